import { Code } from '../../parts/code.tsx'
import { pathTo } from '../../routing/route.ts'
import { type Block, type Piece, piecesOf } from './markdown.ts'
import './prose.css'

export function BlockView({ block }: { readonly block: Block }) {
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
