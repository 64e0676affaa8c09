import { useResource } from '../../api/resource.ts'
import { Page } from '../../components/page.tsx'
import { EmptyState, Loaded } from '../../components/states.tsx'
import './prose.css'
import { CodeBlock } from '../../components/code-block.tsx'
import { pathTo } from '../../routing/route.ts'
import { type Block, type InlinePart, parseInline } from './markdown.ts'

/** The documentation page for an error code. */
export function ErrorPage({ code }: { readonly code: string }) {
  const page = useResource(async () => (await import('./pages.ts')).errorPage(code), code)
  return (
    <Page title={code}>
      <div class="card">
        <Loaded resource={page} what="the page">
          {(blocks) =>
            blocks === null ? (
              <EmptyState title="Unknown error code">
                <p class="quiet">This code is not one of Toolway's. It may come from a server.</p>
              </EmptyState>
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
      return <CodeBlock text={block.text} label={`Example: ${block.text.slice(0, 40)}`} />
    case 'list':
      return (
        <ul class="bullets">
          {block.items.map((item) => (
            <li key={item}>
              <InlineText text={item} />
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
                  <InlineText text={value} />
                </dd>
              </>
            ))}
        </dl>
      )
    default:
      return (
        <p>
          <InlineText text={block.text} />
        </p>
      )
  }
}

function InlineText({ text }: { readonly text: string }) {
  return parseInline(text).map((piece, index) => <InlinePartView key={index} piece={piece} />)
}

/** A part of a line. Only links to other error codes work; the rest of the documentation is not bundled. */
function InlinePartView({ piece: { text, code, link } }: { readonly piece: InlinePart }) {
  const errorLink = link === undefined ? null : /^([A-Z_]+)\.md$/.exec(link)
  if (errorLink) return <a href={pathTo('errors', errorLink[1] ?? '')}>{text}</a>
  return code ? <code>{text}</code> : text
}
