import { CodeBlock } from '../../components/code-block.tsx'
import { JsonTree } from '../../components/json-tree.tsx'
import { indentJson } from '../../format/exact-json.ts'
import { showDirections } from '../../format/show-directions.ts'
import { isObject, objectAt } from '../../schema-form/schema.ts'
import './content-block.css'
import { dataUrl } from './media.ts'

/** One content block in a result. Nothing in the block is fetched or executed, because servers are not trusted. */
export function ContentBlock({ block }: { readonly block: unknown }) {
  if (!isObject(block)) return <JsonTree value={block} name="content" />
  switch (block.type) {
    case 'text':
      return <CodeBlock text={indentJson(String(block.text ?? ''))} label="Text" wrap />
    case 'image': {
      const source = dataUrl(block, 'image')
      return source ? (
        <img class="result-image" src={source} alt="Returned by the tool" />
      ) : (
        <JsonTree value={block} name="image" />
      )
    }
    case 'audio': {
      const source = dataUrl(block, 'audio')
      // biome-ignore lint/a11y/useMediaCaption: tool results have no captions
      return source ? <audio controls src={source} /> : <JsonTree value={block} name="audio" />
    }
    case 'resource_link':
      return (
        <p>
          Resource <code>{showDirections(String(block.uri))}</code>{' '}
          {typeof block.name === 'string' && <bdi class="quiet">{showDirections(block.name)}</bdi>}
        </p>
      )
    case 'resource': {
      const resource = objectAt(block, 'resource')
      return (
        <div class="stack tight">
          <p>
            Resource <code>{showDirections(String(resource.uri))}</code>
          </p>
          {typeof resource.text === 'string' ? (
            <CodeBlock text={resource.text} label="Resource text" wrap />
          ) : (
            <JsonTree value={resource} />
          )}
        </div>
      )
    }
    default:
      return <JsonTree value={block} name={String(block.type)} open={3} />
  }
}
