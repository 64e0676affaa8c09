import { useResource } from '../../api/resource.ts'
import { Page } from '../../parts/page.tsx'
import { Empty, Loaded } from '../../parts/states.tsx'
import './prose.css'
import { Code } from '../../parts/code.tsx'
import { pathTo } from '../../routing/route.ts'
import { type Block, type Piece, piecesOf } from './markdown.ts'

/** Documentation of an error code. */
export function ErrorPage({ code }: { readonly code: string }) {
  const page = useResource(async () => (await import('./pages.ts')).pageOf(code), code)
  return (
    <Page title={code}>
      <div class="card">
        <Loaded of={page} what="the page">
          {(blocks) =>
            blocks === null ? (
              <Empty title="Unknown error code">
                <p class="quiet">This code is not one of Toolway's. It may come from a server.</p>
              </Empty>
            ) : (
              <div class="card-body stack prose">
                {blocks.slice(1).map((block, index) => (
                  <BlockView key={index} block={block} />
                ))}
              </div>
            )
          }
        </Loaded>
      </div>
    </Page>
  )
}

function BlockView({ block }: { readonly block: Block }) {
  switch (block.kind) {
    case 'heading':
      return <h2>{block.text}</h2>
    case 'code':
      return <Code text={block.text} label={`Example: ${block.text.slice(0, 40)}`} />
    case 'list':
      return (
        <ul class="bullets">
          {block.items.map((item) => (
            <li key={item}>
              <Line text={item} />
            </li>
          ))}
        </ul>
      )
    case 'table':
      return (
        <dl class="facts">
          {block.rows
            .filter(([name]) => name !== '')
            .map(([name = '', value = '']) => (
              <>
                <dt>{name}</dt>
                <dd>
                  <Line text={value} />
                </dd>
              </>
            ))}
        </dl>
      )
    default:
      return (
        <p>
          <Line text={block.text} />
        </p>
      )
  }
}

function Line({ text }: { readonly text: string }) {
  return piecesOf(text).map((piece, index) => <PieceView key={index} piece={piece} />)
}

/** Only links to other error codes work; the rest of the documentation is not bundled. */
function PieceView({ piece: { text, code, link } }: { readonly piece: Piece }) {
  const other = link === undefined ? null : /^([A-Z_]+)\.md$/.exec(link)
  if (other) return <a href={pathTo('errors', other[1] ?? '')}>{text}</a>
  return code ? <code>{text}</code> : text
}
