import { useResource } from '../../api/resource.ts'
import { Page } from '../../components/page.tsx'
import { EmptyState, Loaded } from '../../components/states.tsx'
import './prose.css'
import { CodeBlock } from '../../components/code-block.tsx'
import type { Block } from '../../components/markdown/blocks.ts'
import { type Inline, parseInline } from '../../components/markdown/inline.ts'
import { pathTo } from '../../routing/route.ts'

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

/** The kinds of blocks that these pages contain, with a table as a list of facts. */
function BlockView({ block }: { readonly block: Block }) {
  switch (block.kind) {
    case 'heading':
      return <h2>{block.text}</h2>
    case 'code':
      return <CodeBlock text={block.text} label={`Example: ${block.text.slice(0, 40)}`} />
    case 'list':
      return (
        <ul class="bullets">
          {block.items.map((blocks, index) => (
            <li key={index}>
              {blocks.map((inner, at) =>
                inner.kind === 'paragraph' ? (
                  <InlineText key={at} text={inner.text} />
                ) : (
                  <BlockView key={at} block={inner} />
                ),
              )}
            </li>
          ))}
        </ul>
      )
    case 'table':
      return (
        <dl class="facts">
          {block.rows.map(([name, value]) => (
            <>
              <dt>{name?.text}</dt>
              <dd>
                <InlineText text={value?.text ?? ''} />
              </dd>
            </>
          ))}
        </dl>
      )
    case 'paragraph':
      return (
        <p>
          <InlineText text={block.text} />
        </p>
      )
    default:
      return null
  }
}

const InlineText = ({ text }: { readonly text: string }) => (
  <Inlines content={parseInline(text, (href) => href.endsWith('.md'))} />
)

const Inlines = ({ content }: { readonly content: readonly Inline[] }) => (
  <>
    {content.map((node, index) => (
      <InlineView key={index} node={node} />
    ))}
  </>
)

/** A part of a line. Only links to other error codes work; the rest of the documentation is not bundled. */
function InlineView({ node }: { readonly node: Inline }) {
  if (node.kind === 'text') return <>{node.text}</>
  if (node.kind === 'code') return <code>{node.text}</code>
  const content = <Inlines content={node.content} />
  if (node.kind === 'emphasis') return <em>{content}</em>
  const [, code] = ('href' in node && /^([A-Z_]+)\.md$/.exec(node.href)) || []
  return code === undefined ? content : <a href={pathTo('errors', code)}>{content}</a>
}
