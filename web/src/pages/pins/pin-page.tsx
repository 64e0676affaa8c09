import { useSignal } from '@preact/signals'
import type { PinDetail, ReviewedDefinitionView } from '../../../../src/admin/contract.ts'
import { actions, queries } from '../../api/endpoints.ts'
import { liveServers, updateLiveServer } from '../../api/live.ts'
import { useResource } from '../../api/resource.ts'
import { ActionButton } from '../../components/action-button.tsx'
import { Button } from '../../components/button.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { withNotice } from '../../components/notices.tsx'
import { Card, Page } from '../../components/page.tsx'
import { Loaded } from '../../components/states.tsx'
import { StatusBadge } from '../../components/status-badge.tsx'
import { pinStatuses } from '../../components/statuses.ts'
import { RelativeTime } from '../../components/times.tsx'
import { disabling } from '../../config-edit/enabling.ts'
import { ReviewPanel } from '../../config-edit/review-change.tsx'
import { pathTo } from '../../routing/route.ts'
import { DiffLines, Findings } from './definition-lines.tsx'
import { shownLabel, useReloadOnInboxChange } from './pins.tsx'

export function PinPage({ label }: { readonly label: string }) {
  // Poll as well: a decision about a definition that is not in the inbox does not change the inbox.
  const pin = useResource(queries.pin(label), label, { pollEveryMs: 5000 })
  useReloadOnInboxChange(pin)
  const { data } = pin
  return (
    <Page
      title={data ? shownLabel(data) : 'Definition'}
      heading={
        data && (
          <span class="row">
            {shownLabel(data)} <StatusBadge status={pinStatuses[data.state]} chip />
          </span>
        )
      }
      note={data && effectOf(data)}
      back={{ href: pathTo('pins'), name: 'Definitions' }}
      actions={data && <BlockServer server={data.server} />}
    >
      <Loaded resource={pin} what="the definition">
        {(detail) =>
          detail.definitions.map((definition) => (
            <Definition key={definition.hash} pin={detail} definition={definition} onDone={pin.reload} />
          ))
        }
      </Loaded>
    </Page>
  )
}

const effectOf = ({ quarantined, open }: PinDetail): string =>
  quarantined ? 'No agent can see or use it.' : open ? 'Agents can use it. Review it.' : 'Agents can use it.'

function DisableServer({ server, onSaved }: { readonly server: string; onSaved(): void }) {
  const definition = useResource(queries.serverDefinition(server), server)
  return (
    <Loaded resource={definition} what="the definition">
      {(data) => <ReviewPanel edit={disabling(server, data.definition ?? {})} onSaved={onSaved} />}
    </Loaded>
  )
}

/** Disables the whole server in the configuration, or turns it off until the next restart. */
function BlockServer({ server }: { readonly server: string }) {
  const choosing = useSignal(false)
  const close = () => (choosing.value = false)
  const live = liveServers.value?.find(({ name }) => name === server)
  if (live?.health === 'disabled') {
    return (
      <span class="quiet">
        The server <a href={pathTo('servers', server)}>{server}</a> is {live.paused ? 'turned off' : 'disabled'}.
      </span>
    )
  }
  const turnOff = async () => {
    await withNotice(
      async () => updateLiveServer(await actions.server(server, 'disable')),
      () => `Turned off ${server}.`,
    )
    close()
  }
  return (
    <>
      <Button kind="danger" onClick={() => (choosing.value = true)}>
        Block the server…
      </Button>
      {choosing.value && (
        <Dialog title={`Block ${server}`} onClose={close} wide>
          <p>
            All tools of {server} disappear, and calls to them are refused. Save this change to disable it in the
            configuration:
          </p>
          <DisableServer server={server} onSaved={close} />
          <p>Or turn it off in the running gateway only. The configuration does not change.</p>
          <div class="actions">
            <ActionButton name="Turn off until the next restart" icon="pause" kind="danger" run={turnOff} />
          </div>
        </Dialog>
      )}
    </>
  )
}

interface DefinitionProps {
  readonly pin: PinDetail
  readonly definition: ReviewedDefinitionView
  onDone(): void
}

function Definition({ pin, definition, onDone }: DefinitionProps) {
  const { hash, at, state, approvedBy, current, findings, lines } = definition
  const decide = (decision: 'approve' | 'block', message: string) => async () => {
    await withNotice(
      () => actions.pin(pin.label, decision, hash),
      () => message,
    )
    onDone()
  }
  const mayApprove = state !== 'approved' || approvedBy !== 'operator'
  return (
    <Card
      title={`${current ? 'Offered now' : 'Earlier'}: ${state}`}
      side={
        <span class="row">
          {mayApprove && (
            <ActionButton name="Approve" icon="check" run={decide('approve', 'Approved. Agents can use it now.')} />
          )}
          {state !== 'blocked' && (
            <ActionButton
              name={state !== 'approved' && pin.mode === 'quarantine' ? 'Keep blocked' : 'Block'}
              kind="danger"
              run={decide('block', 'Blocked until it is approved.')}
            />
          )}
        </span>
      }
    >
      <p class="quiet">
        {approvedBy === 'first sight' ? 'First listed' : approvedBy ? 'Approved' : 'First seen'}{' '}
        <RelativeTime at={at} />, hash <code>{hash.slice(0, 12)}</code>
      </p>
      <Findings findings={findings} />
      <DiffLines lines={lines} label={current ? 'Difference from the approved definition' : 'Definition'} />
    </Card>
  )
}
