import { useSignal } from '@preact/signals'
import type { ToolDetail, TryResult } from '../../../../src/admin/contract.ts'
import type { ApiError } from '../../api/request.ts'
import { selectableAgents, session } from '../../api/session.ts'
import { ActionButton } from '../../components/action-button.tsx'
import { Card } from '../../components/page.tsx'
import { SelectField } from '../../components/select-field.tsx'
import { pluralize } from '../../format/number.ts'
import { ArgumentEditor } from '../../schema-form/argument-editor.tsx'
import { initialValue } from '../../schema-form/initial-value.ts'
import { gatewayProblems, missingValues } from '../../schema-form/problems.ts'
import { objectAt } from '../../schema-form/schema.ts'
import { usePlayground } from '../playground/run.ts'
import { RunView } from '../playground/run-view.tsx'
import { errorOf, TryOutcome } from './try-outcome.tsx'

interface TryItProps {
  readonly tool: ToolDetail
  /** The form's value. The page keeps it while other views are shown. */
  readonly draft: { value: unknown }
}

/** The arguments of a run, with what has to be fixed in them. */
function useArguments({ tool, draft }: TryItProps) {
  const schema = objectAt(tool.definition, 'inputSchema')
  const value = useSignal(draft.value ?? initialValue(schema, schema))
  const typedJson = useSignal<string | undefined>(undefined)
  const broken = useSignal(false)
  const attempted = useSignal(false)
  /** The value of the last run. The gateway's problems belong to it. */
  const sent = useSignal<unknown>(undefined)
  const missing = missingValues(value.value, schema, schema)
  const problemsAfter = (outcome: TryResult | ApiError | undefined) => {
    if (sent.value !== value.value) return attempted.value ? missing : []
    return gatewayProblems(outcome && 'call' in outcome ? errorOf(outcome)?.message : undefined)
  }
  return {
    isReady: missing.length === 0 && !broken.value,
    missing: attempted.value ? missing.length : 0,
    json: typedJson.value ?? JSON.stringify(value.value ?? {}),
    problemsAfter,
    onAttempt: () => (attempted.value = true),
    onSend: () => (sent.value = value.value),
    editor: {
      schema,
      value: value.value,
      onChange: (next: unknown, text?: string) => {
        draft.value = next
        typedJson.value = text?.trim() ? text : undefined
        value.value = next
      },
      onInvalidJson: (is: boolean) => (broken.value = is),
    },
  }
}

/** Calls a tool. Policy, limits and audit apply as they do to any other call. */
export function TryIt({ tool, draft }: TryItProps) {
  const given = useArguments({ tool, draft })
  const ownAgent = typeof session.value === 'object' ? session.value.agent : ''
  const agents = selectableAgents(tool.agents.map((one) => one.agent))
  const denied = new Set(tool.agents.filter(({ allowed }) => !allowed).map((one) => one.agent))
  const agent = useSignal(
    agents.includes(ownAgent) ? ownAgent : (agents.find((name) => !denied.has(name)) ?? agents[0] ?? ownAgent),
  )
  const playground = usePlayground()
  const run = async () => {
    given.onAttempt()
    if (!given.isReady) return
    given.onSend()
    await playground.start({
      operation: 'call_tool',
      name: tool.name,
      arguments: given.json,
      agent: agent.value === ownAgent ? undefined : agent.value,
    })
  }
  return (
    <div class="grid-2 try">
      <Card title="Arguments">
        <div class="stack">
          <ArgumentEditor {...given.editor} problems={given.problemsAfter(playground.run?.outcome)} />
          {given.missing > 0 && (
            <p class="problem" role="alert">
              Fix {pluralize(given.missing, 'field')} to run this tool.
            </p>
          )}
          <div class="filters">
            <SelectField
              label="Act as agent"
              value={agent.value}
              options={agents.map((name) => [name, denied.has(name) ? `${name} (denied)` : name])}
              onChange={(next) => (agent.value = next)}
            />
            <ActionButton
              name="Run"
              icon="play"
              kind="primary"
              everyone
              confirm={given.isReady && tool.access === 'destructive' ? confirmDestructive(tool) : undefined}
              run={run}
            />
          </div>
        </div>
      </Card>
      <Card title="Result">
        <RunView
          run={playground.run}
          cancel={playground.cancel}
          answered={playground.answered}
          hint="The result appears here. The call is real: rules, limits and the cache apply, and the audit log records it."
        >
          {(result) => <TryOutcome result={result} />}
        </RunView>
      </Card>
    </div>
  )
}

const confirmDestructive = ({ name }: ToolDetail) => ({
  title: `Run ${name}?`,
  text: 'This tool may make changes that Toolway cannot undo, such as overwriting, deleting or sending data.',
})
