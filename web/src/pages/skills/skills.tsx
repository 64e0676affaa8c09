import type { SkillDetail, SkillView } from '../../../../src/admin/contract.ts'
import { actions, queries } from '../../api/endpoints.ts'
import { useResource } from '../../api/resource.ts'
import { ActionButton } from '../../components/action-button.tsx'
import { Fact, Facts } from '../../components/facts.tsx'
import { withNotice } from '../../components/notices.tsx'
import { Card, Page } from '../../components/page.tsx'
import { EmptyState, Loaded } from '../../components/states.tsx'
import { StatusBadge } from '../../components/status-badge.tsx'
import { pinStatuses } from '../../components/statuses.ts'
import { type Column, RowLink, Table } from '../../components/table.tsx'
import { pathTo } from '../../routing/route.ts'
import { DiffLines, Findings } from '../pins/definition-lines.tsx'

const pollMs = 5_000

/** The skills of all servers and folders. */
export function Skills() {
  const all = useResource(queries.skills, 'skills', { pollEveryMs: pollMs })
  return (
    <Page title="Skills" note="Instructions that servers and folders offer to models.">
      <div class="card">
        <Loaded resource={all} what="the skills">
          {({ skills }) =>
            skills.length > 0 ? (
              <Table label="Skills" columns={skillColumns} rows={skills} keyOf={({ name }) => name} />
            ) : (
              <EmptyState title="No skills">
                <p class="quiet">No server offers skills, and skills.folders has none.</p>
              </EmptyState>
            )
          }
        </Loaded>
      </div>
    </Page>
  )
}

const skillColumns: readonly Column<SkillView>[] = [
  {
    title: 'Skill',
    sortBy: ({ title }) => title,
    truncate: true,
    cell: ({ name, title, description }) => (
      <>
        <RowLink href={pathTo('skills', name)}>{title}</RowLink>
        <span class="sub">{description}</span>
      </>
    ),
  },
  { title: 'Server', sortBy: ({ server }) => server, cell: ({ server }) => server },
  {
    title: 'State',
    sortBy: ({ pin }) => pin,
    cell: ({ pin }) => pin !== 'off' && <StatusBadge status={pinStatuses[pin]} />,
  },
  {
    title: 'Findings',
    minScreen: 'middle',
    sortBy: ({ flags }) => flags.length,
    cell: ({ flags }) => flags.length > 0 && <span class="tone-bad">{flags.join(', ')}</span>,
  },
]

/** One skill: its text, what the scanner found in it, and decisions about its definition. */
export function SkillPage({ name }: { readonly name: string }) {
  const skill = useResource(queries.skill(name), name)
  return (
    <Page title={skill.data?.title ?? 'Skill'} note={name} back={{ href: pathTo('skills'), name: 'Skills' }}>
      <Loaded resource={skill} what="the skill">
        {(detail) => <SkillCards skill={detail} onDone={skill.reload} />}
      </Loaded>
    </Page>
  )
}

function SkillCards({ skill, onDone }: { readonly skill: SkillDetail; onDone(): void }) {
  const { description, server, quarantined, files, text, failure, findings } = skill
  const lines = (text ?? '').split('\n').map((line) => ({ mark: ' ' as const, text: line, findings: [] }))
  return (
    <>
      <Card title="Definition" side={<Decisions skill={skill} onDone={onDone} />}>
        <Facts>
          <Fact name="Description">{description}</Fact>
          <Fact name="Server">{server}</Fact>
          <Fact name="Agents">{quarantined ? 'No agent can see or use it.' : 'Agents can use it.'}</Fact>
          <Fact name="Files">
            {files === null ? 'generated, without digests' : files.map(({ path }) => path).join(', ')}
          </Fact>
        </Facts>
        {skill.pin !== 'off' && <a href={pathTo('pins', skill.label)}>See what changed</a>}
      </Card>
      <Card title="SKILL.md">
        <Findings findings={findings} />
        {failure === null ? <DiffLines lines={lines} label="Text of the skill" /> : <p class="problem">{failure}</p>}
      </Card>
    </>
  )
}

function Decisions({ skill, onDone }: { readonly skill: SkillDetail; onDone(): void }) {
  const { label, hash, pin } = skill
  if (hash === null) return null
  const decide = (decision: 'approve' | 'block', message: string) => async () => {
    await withNotice(
      () => actions.pin(label, decision, hash),
      () => message,
    )
    onDone()
  }
  return (
    <span class="row">
      {pin !== 'approved' && (
        <ActionButton name="Approve" icon="check" run={decide('approve', 'Approved. Agents can use it now.')} />
      )}
      {pin !== 'blocked' && (
        <ActionButton name="Block" kind="danger" run={decide('block', 'Blocked until it is approved.')} />
      )}
    </span>
  )
}
