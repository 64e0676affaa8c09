import { useSignal } from '@preact/signals'
import type { OverridePreview, ServerDefinitionView, ServerForm, ToolDetail } from '../../../src/admin/contract.ts'
import { queries } from '../api/endpoints.ts'
import { useResource } from '../api/resource.ts'
import { Button } from '../components/button.tsx'
import { CodeBlock } from '../components/code-block.tsx'
import { Dialog } from '../components/dialog.tsx'
import { Loaded, Note } from '../components/states.tsx'
import { pluralize } from '../format/number.ts'
import { SchemaForm } from '../schema-form/argument-editor.tsx'
import { isObject, objectAt } from '../schema-form/schema.ts'
import { EditDialog } from './edit-dialog.tsx'

interface OverrideProps {
  readonly tool: ToolDetail
  onSaved(): void
}

/** The button that changes what models see of a tool. */
export function ToolOverride({ tool, onSaved }: OverrideProps) {
  const open = useSignal(false)
  const close = () => (open.value = false)
  return (
    <>
      <Button kind="tiny" onClick={() => (open.value = true)}>
        Edit for models
      </Button>
      {open.value && <OverrideDialog tool={tool} onClose={close} onSaved={onSaved} />}
    </>
  )
}

function OverrideDialog({ tool, onClose, onSaved }: OverrideProps & { onClose(): void }) {
  const load = async (signal: AbortSignal) => ({
    server: await queries.serverDefinition(tool.server)(signal),
    form: await queries.serverForm(signal),
  })
  const loaded = useResource(load, tool.server)
  const { data } = loaded
  if (data?.server.definition) return <OverrideForm tool={tool} {...data} onClose={onClose} onSaved={onSaved} />
  return (
    <Dialog title={`Edit ${tool.name} for models`} onClose={onClose}>
      <Loaded resource={loaded} what="the settings">
        {({ server }) => <p>{server.editable.reason}</p>}
      </Loaded>
    </Dialog>
  )
}

interface OverrideFormProps extends OverrideProps {
  readonly server: ServerDefinitionView
  readonly form: ServerForm
  onClose(): void
}

function OverrideForm({ tool, server, form, onClose, onSaved }: OverrideFormProps) {
  const { definition, hash } = server
  const tools = objectAt(definition ?? {}, 'tools')
  const key = /^(?:include|exclude)$|^=/.test(tool.tool) ? `=${tool.tool}` : tool.tool
  const value = useSignal<unknown>(tools[key] ?? {})
  const override = isObject(value.value) ? value.value : {}
  const { [key]: _, ...others } = tools
  const isEmpty = Object.keys(override).length === 0
  const next = { ...definition, tools: isEmpty ? others : { ...others, [key]: override } }
  const schema = objectAt(objectAt(objectAt(form.schema, 'properties'), 'tools'), 'additionalProperties')
  return (
    <EditDialog
      title={`Edit ${tool.name} for models`}
      edit={{ changes: [{ path: ['mcpServers', server.name], was: hash, value: next }] }}
      fields={override}
      onClose={onClose}
      onSaved={onSaved}
    >
      <p class="quiet small">
        <code>
          mcpServers.{server.name}.tools.{key}
        </code>{' '}
        in <code>{server.file}</code>. Rules, pins and the audit log use the name {tool.tool}.
      </p>
      <SchemaForm schema={schema} value={override} onChange={(edited) => (value.value = edited)} />
      <ModelView tool={tool} override={override} />
    </EditDialog>
  )
}

/** What models will see, and its token cost before and after. */
function ModelView({ tool, override }: { readonly tool: ToolDetail; readonly override: object }) {
  const preview = useResource(queries.previewOverride(tool.name, override), JSON.stringify(override))
  return (
    <section class="stack tight" aria-label="What models will see">
      <h3>What models will see</h3>
      <Loaded resource={preview} what="the preview">
        {({ definition, tokens, own, problems }: OverridePreview) => (
          <>
            <p>
              {pluralize(tokens, 'token')}; now {pluralize(tool.tokens, 'token')}; as the server defines it{' '}
              {pluralize(own, 'token')}
            </p>
            {problems.map((problem) => (
              <Note key={problem} tone="warn">
                {problem}
              </Note>
            ))}
            <CodeBlock text={JSON.stringify(definition, null, 2)} label="Definition for models" />
          </>
        )}
      </Loaded>
    </section>
  )
}
