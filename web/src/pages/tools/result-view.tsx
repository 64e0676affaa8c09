import { useSignal } from '@preact/signals'
import { Code } from '../../parts/code.tsx'
import { JsonTree } from '../../parts/json-tree.tsx'
import { Tabs } from '../../parts/tabs.tsx'
import { ContentBlock } from './content-block.tsx'

const plain = { shown: 'Content', raw: 'JSON' }
const withStructured = { shown: 'Content', structured: 'Structured', raw: 'JSON' }

export function ResultView({ result }: { readonly result: Readonly<Record<string, unknown>> }) {
  const view = useSignal('shown')
  const blocks = Array.isArray(result.content) ? result.content : []
  const structured = result.structuredContent
  return (
    <Tabs<string>
      label="Result views"
      names={structured === undefined ? plain : withStructured}
      value={view.value}
      onChange={(next) => (view.value = next)}
    >
      {view.value === 'shown' &&
        (blocks.length === 0 ? (
          <p class="quiet">The result has no content{structured === undefined ? '.' : ' except structured content.'}</p>
        ) : (
          blocks.map((block, index) => <ContentBlock key={index} block={block} />)
        ))}
      {view.value === 'structured' && <JsonTree value={structured} open={4} />}
      {view.value === 'raw' && <Code text={JSON.stringify(result, null, 2)} label="Full result" />}
    </Tabs>
  )
}
