import { useSignal } from '@preact/signals'
import { queries } from '../../api/endpoints.ts'
import { useResource } from '../../api/resource.ts'
import { Button } from '../../components/button.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { Loaded } from '../../components/states.tsx'
import { describeChoice, isToolChosen, serverState, type ToolChoice, toggleServer, toggleTool } from './tool-choice.ts'

interface ToolPickerProps {
  readonly choice: ToolChoice
  onChange(choice: ToolChoice): void
}

/** A button that shows which tools the model may use, and a dialog to choose them. */
export function ToolPicker({ choice, onChange }: ToolPickerProps) {
  const open = useSignal(false)
  return (
    <>
      <Button icon="tools" aria-haspopup="dialog" onClick={() => (open.value = true)}>
        Tools: {describeChoice(choice)}
      </Button>
      {open.value && (
        <Dialog title="Tools for the next answers" onClose={() => (open.value = false)}>
          <p class="quiet">Tools that the agent may not use are still denied.</p>
          <ServerList choice={choice} onChange={onChange} />
          <form method="dialog" class="actions">
            <Button onClick={() => onChange(undefined)}>All</Button>
            <Button onClick={() => onChange([])}>None</Button>
            <Button kind="primary" type="submit">
              Done
            </Button>
          </form>
        </Dialog>
      )}
    </>
  )
}

/** The names of the servers, and of the other sources of tools, such as `native`. */
async function toolSources(signal: AbortSignal): Promise<readonly string[]> {
  const [servers, { tools }] = await Promise.all([queries.servers(signal), queries.tools({ limit: 500 })(signal)])
  const all = new Set([...servers.map(({ name }) => name), ...tools.map(({ server }) => server)])
  // The model is never offered the gateway's own tools for finding tools.
  all.delete('toolway')
  return [...all].sort()
}

function ServerList({ choice, onChange }: ToolPickerProps) {
  const known = useResource(toolSources, 'chat tools')
  return (
    <Loaded resource={known} what="the servers">
      {(servers) => (
        <ul class="tool-choice">
          {servers.map((server) => (
            <ServerItem key={server} {...{ server, servers, choice, onChange }} />
          ))}
        </ul>
      )}
    </Loaded>
  )
}

interface ServerItemProps extends ToolPickerProps {
  readonly server: string
  readonly servers: readonly string[]
}

function ServerItem({ server, servers, choice, onChange }: ServerItemProps) {
  const open = useSignal(false)
  const state = serverState(choice, server)
  return (
    <li>
      <div class="row">
        <label class="check">
          <input
            type="checkbox"
            checked={state === 'all'}
            indeterminate={state === 'some'}
            onChange={() => onChange(toggleServer(choice, server, servers))}
          />{' '}
          {server}
        </label>
        <Button
          kind="plain tiny"
          icon={open.value ? 'down' : 'right'}
          aria-expanded={open.value}
          aria-label={`Tools of ${server}`}
          onClick={() => (open.value = !open.value)}
        >
          Tools
        </Button>
      </div>
      {open.value && <ToolList {...{ server, servers, choice, onChange }} />}
    </li>
  )
}

function ToolList({ server, servers, choice, onChange }: ServerItemProps) {
  const page = useResource(queries.tools({ server, limit: 500 }), `chat tools ${server}`)
  return (
    <Loaded resource={page} what="the tools">
      {(data) => {
        const tools = data.tools.map(({ tool }) => tool)
        return (
          <ul class="tool-choice">
            {tools.map((tool) => (
              <li key={tool}>
                <label class="check">
                  <input
                    type="checkbox"
                    checked={isToolChosen(choice, server, tool)}
                    onChange={() => onChange(toggleTool(choice, { server, tool }, { servers, tools }))}
                  />{' '}
                  <code>{tool}</code>
                </label>
              </li>
            ))}
          </ul>
        )
      }}
    </Loaded>
  )
}
