import type { Heading, Nodes, RootContent, Table } from 'mdast'
import type { ComponentChildren } from 'preact'
import { useEffect, useReducer, useRef } from 'preact/hooks'
import { showDirections } from '../../format/show-directions.ts'
import { CodeBlock } from '../code-block.tsx'
import { parseMarkdown } from './parse.ts'
import './markdown.css'

interface MarkdownProps {
  readonly text: string
  /** Whether more text follows. It is parsed less often then. */
  readonly growing?: boolean
}

/**
 * Shows Markdown from an untrusted source. It builds elements, never HTML; links lead only to web pages and mail
 * addresses; images are links, so that nothing is loaded from other origins.
 */
export function Markdown({ text, growing = false }: MarkdownProps) {
  const nodes = useParsed(text, growing)
  return <div class="markdown">{nodes ? <Content nodes={nodes} /> : <p dir="auto">{showDirections(text)}</p>}</div>
}

interface Parsed {
  readonly text: string
  readonly nodes: readonly RootContent[] | undefined
  /** When a longer text may be parsed. */
  readonly nextAt: number
}

/** Parses a growing text in at most a fifth of the time. */
function useParsed(text: string, growing: boolean): readonly RootContent[] | undefined {
  const latest = useRef<Parsed>(undefined)
  const [, update] = useReducer((count: number) => count + 1, 0)
  const start = performance.now()
  if (!latest.current || (latest.current.text !== text && (!growing || latest.current.nextAt <= start))) {
    const nodes = parseMarkdown(text)
    const end = performance.now()
    latest.current = { text, nodes, nextAt: end + 4 * (end - start) }
  }
  const { nextAt, text: parsed, nodes } = latest.current
  useEffect(() => {
    if (parsed === text) return
    const timer = setTimeout(update, nextAt - performance.now())
    return () => clearTimeout(timer)
  }, [parsed, text])
  return nodes
}

interface ContentProps {
  readonly nodes: readonly Nodes[]
  /** Added to the level of headings. By default, they are below the page's own headings, which have levels 1 and 2. */
  readonly headingOffset?: number
  /** Whether they are in a list or quote, which has the direction of its first letter. */
  readonly nested?: boolean
  readonly inLink?: boolean
}

/** Shows the nodes of a parsed text. */
export const Content = ({ nodes, ...context }: ContentProps) => (
  <>
    {nodes.map((node, index) => (
      <NodeView key={`${index} ${node.type}`} node={node} context={context} />
    ))}
  </>
)

type Context = Omit<ContentProps, 'nodes'>

function NodeView({ node, context }: { readonly node: Nodes; readonly context: Context }) {
  switch (node.type) {
    case 'text':
      return <>{showDirections(node.value)}</>
    case 'inlineCode':
      return <code>{showDirections(node.value)}</code>
    case 'break':
      return <br />
    case 'thematicBreak':
      return <hr />
    case 'code':
      return <CodeBlock text={node.value} label={node.lang ? `Code (${node.lang})` : 'Code'} />
    case 'image':
      return (
        <LinkView url={node.url} inLink={context.inLink}>
          Image: {showDirections(node.alt || node.url)}
        </LinkView>
      )
    case 'table':
      return <TableView table={node} context={context} />
  }
  if (!('children' in node)) return null
  const children = (added: Context = {}) => <Content nodes={node.children} {...context} {...added} />
  switch (node.type) {
    case 'paragraph':
      return <p dir={context.nested ? undefined : 'auto'}>{children()}</p>
    case 'heading':
      return <HeadingView heading={node} context={context} />
    case 'blockquote':
      return <blockquote dir="auto">{children({ nested: true })}</blockquote>
    case 'list': {
      const items = children({ nested: true })
      return node.ordered ? (
        <ol dir="auto" start={node.start ?? 1}>
          {items}
        </ol>
      ) : (
        <ul dir="auto">{items}</ul>
      )
    }
    case 'listItem':
      return <li>{children()}</li>
    case 'strong':
      return <strong>{children()}</strong>
    case 'emphasis':
      return <em>{children()}</em>
    case 'delete':
      return <del>{children()}</del>
    case 'link':
      return (
        <LinkView url={node.url} inLink={context.inLink}>
          {node.children.length > 0 ? children({ inLink: true }) : node.url}
        </LinkView>
      )
    default:
      return children()
  }
}

function HeadingView({ heading, context }: { readonly heading: Heading; readonly context: Context }) {
  const { depth, children } = heading
  const Element = `h${Math.min(6, depth + (context.headingOffset ?? 2))}` as 'h1'
  return (
    <Element class={`heading level-${depth}`} dir="auto">
      <Content nodes={children} {...context} />
    </Element>
  )
}

interface LinkViewProps {
  readonly url: string
  readonly inLink: boolean | undefined
  readonly children: ComponentChildren
}

/** Links cannot contain links, but images in links would be some. */
function LinkView({ url, inLink, children }: LinkViewProps) {
  if (inLink) return <span>{children}</span>
  if (url.startsWith('/')) return <a href={url}>{children}</a>
  return (
    <a href={url} target="_blank" rel="noopener noreferrer nofollow" title={url}>
      {children}
    </a>
  )
}

function TableView({ table, context }: { readonly table: Table; readonly context: Context }) {
  const row = ({ children }: Table['children'][number], Element: 'th' | 'td') => (
    <tr>
      {children.map((cell, column) => (
        <Element key={column} class={`align-${table.align?.[column] ?? 'start'}`} dir="auto">
          <Content nodes={cell.children} {...context} />
        </Element>
      ))}
    </tr>
  )
  const [head, ...rows] = table.children
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable areas must be reachable by keyboard
    // biome-ignore lint/a11y/useSemanticElements: it contains no form fields
    <div class="table-scroll" tabIndex={0} role="group" aria-label="Table">
      <table>
        {head?.children.some((cell) => cell.children.length > 0) && <thead>{row(head, 'th')}</thead>}
        <tbody>{rows.map((one) => row(one, 'td'))}</tbody>
      </table>
    </div>
  )
}
