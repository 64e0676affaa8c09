import { useSignal } from '@preact/signals'
import type { ToolDetail } from '../../../../src/serve/admin/contract.ts'
import { Code } from '../../parts/code.tsx'
import { Card } from '../../parts/page.tsx'
import { isObject, objectAt } from '../../schema-form/schema.ts'
import { SchemaView } from '../../schema-form/schema-view.tsx'

export function Definition({ tool }: { readonly tool: ToolDetail }) {
  const raw = useSignal(false)
  const input = objectAt(tool.definition, 'inputSchema')
  const output = tool.definition.outputSchema
  return (
    <>
      <Card
        title={tool.title ?? 'Description'}
        side={
          <button type="button" class="button tiny" aria-pressed={raw.value} onClick={() => (raw.value = !raw.value)}>
            As JSON
          </button>
        }
      >
        {raw.value ? (
          <Code text={JSON.stringify(tool.definition, null, 2)} label="Definition" />
        ) : (
          <p class="description">{tool.description}</p>
        )}
      </Card>
      <div class="grid-2">
        <Card title="Input">
          <SchemaView schema={input} root={input} />
        </Card>
        <Card title="Output">
          {isObject(output) ? (
            <SchemaView schema={output} root={output} />
          ) : (
            <p class="quiet">No output schema. Results can be text, images or other content.</p>
          )}
        </Card>
      </div>
    </>
  )
}
