import { Button } from '../../components/button.tsx'
import './first-steps.css'
import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import type { Overview, ServerView } from '../../../../src/admin/contract.ts'
import { isAdmin } from '../../api/session.ts'
import { Icon } from '../../components/icon.tsx'
import { lazy } from '../../components/lazy.tsx'
import { Card } from '../../components/page.tsx'
import { withQuery } from '../../routing/query.ts'
import { pathTo } from '../../routing/route.ts'
import { ConnectTabs } from './connect.tsx'

const AddServer = lazy('the form', async () => (await import('../../config-edit/add-server.tsx')).AddServer)

interface FirstStepsProps {
  readonly overview: Overview
  /** The servers that an operator has added: not the native tools. */
  readonly servers: readonly ServerView[]
  readonly called: boolean
}

/** Leads from "no servers yet" to the first call. Shown until there is a server and a call. */
export function FirstSteps({ overview: { endpoint, sessions }, servers, called }: FirstStepsProps) {
  const adding = useSignal(false)
  const [first] = servers
  return (
    <Card title="First steps">
      <ol class="steps">
        <Step done={servers.length > 0} title="Add a server">
          {first ? (
            <p>
              <a href={pathTo('servers')}>See your servers</a>
            </p>
          ) : (
            <>
              <p class="quiet">No servers yet. Toolway's native tools already work.</p>
              {isAdmin.value ? (
                <p>
                  <Button kind="primary" onClick={() => (adding.value = true)}>
                    Add server
                  </Button>
                </p>
              ) : (
                <p class="quiet">An admin can add servers.</p>
              )}
            </>
          )}
        </Step>
        <Step done={sessions > 0} title="Connect a client">
          <ConnectTabs endpoint={endpoint} />
        </Step>
        <Step done={called} title="Make the first call">
          <p>
            <a class="button" href={withQuery(pathTo('tools'), { server: first?.name })}>
              Choose a tool to try
            </a>
          </p>
        </Step>
      </ol>
      {adding.value && <AddServer onClose={() => (adding.value = false)} onSaved={() => {}} />}
    </Card>
  )
}

interface StepProps {
  readonly done: boolean
  readonly title: string
  readonly children: ComponentChildren
}

function Step({ done, title, children }: StepProps) {
  return (
    <li data-done={done || undefined}>
      <h3>
        {title}
        {done && (
          <span class="tone-ok">
            <Icon name="check" /> <span class="small">done</span>
          </span>
        )}
      </h3>
      {children}
    </li>
  )
}
