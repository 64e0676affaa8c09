import { useMemo } from 'preact/hooks'
import { showDirections } from '../../format/show-directions.ts'
import { CodeBlock } from '../code-block.tsx'
import { type Block, type Cell, parseBlocks } from './blocks.ts'
import { type Inline, parseInline } from './inline.ts'
import './markdown.css'

/**
 * Text that is longer or has more marks is shown as it is: each mark may become an element, and a page with that many
 * would be slow.
 */
const maxLength = 256 * 1024
const maxMarks = 12_000

const isBounded = (text: string): boolean =>
  text.length <= maxLength && (text.match(/[\n|*_~`[<]|https?:/g)?.length ?? 0) <= maxMarks

/**
 * Shows Markdown from an untrusted source. It builds elements, never HTML; links lead only to web pages and mail
 * addresses; images are links, so that nothing is loaded from other origins.
 */
export function Markdown({ text }: { readonly text: string }) {
  const blocks = useMemo(() => (isBounded(text) ? parseBlocks(text) : undefined), [text])
  return <div class="markdown">{blocks ? <Blocks blocks={blocks} /> : <p dir="auto">{showDirections(text)}</p>}</div>
}

interface BlocksProps {
  readonly blocks: readonly Block[]
  /** Whether they are in a list or quote, which has the direction of its first letter. */
  readonly nested?: boolean
}

const Blocks = ({ blocks, nested = false }: BlocksProps) => (
  <>
    {blocks.map((block, index) => (
      <BlockView key={`${index} ${block.kind}`} block={block} nested={nested} />
    ))}
  </>
)

function BlockView({ block, nested }: { readonly block: Block; readonly nested: boolean }) {
  switch (block.kind) {
    case 'paragraph':
      return (
        <p dir={nested ? undefined : 'auto'}>
          <Formatted text={block.text} />
        </p>
      )
    case 'heading':
      return <Heading level={block.level} text={block.text} />
    case 'code':
      return <CodeBlock text={block.text} label={block.language === '' ? 'Code' : `Code (${block.language})`} />
    case 'quote':
      return (
        <blockquote dir="auto">
          <Blocks blocks={block.blocks} nested />
        </blockquote>
      )
    case 'list': {
      const items = block.items.map((blocks, index) => (
        <li key={index}>
          <Blocks blocks={blocks} nested />
        </li>
      ))
      return block.start === undefined ? (
        <ul dir="auto">{items}</ul>
      ) : (
        <ol dir="auto" start={block.start}>
          {items}
        </ol>
      )
    }
    case 'table':
      return (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable areas must be reachable by keyboard
        // biome-ignore lint/a11y/useSemanticElements: it contains no form fields
        <div class="table-scroll" tabIndex={0} role="group" aria-label="Table">
          <table>
            <thead>
              <Row cells={block.head} isHead />
            </thead>
            <tbody>
              {block.rows.map((cells, index) => (
                <Row key={index} cells={cells} />
              ))}
            </tbody>
          </table>
        </div>
      )
    case 'rule':
      return <hr />
  }
}

/** The page's own headings have levels 1 and 2. */
function Heading({ level, text }: { readonly level: number; readonly text: string }) {
  const Element = (['h3', 'h4', 'h5'] as const)[level - 1] ?? 'h6'
  return (
    <Element class={`heading level-${level}`} dir="auto">
      <Formatted text={text} />
    </Element>
  )
}

function Row({ cells, isHead = false }: { readonly cells: readonly Cell[]; readonly isHead?: boolean }) {
  const Element = isHead ? 'th' : 'td'
  return (
    <tr>
      {cells.map(({ text, align }, index) => (
        <Element key={index} class={align && `align-${align}`} dir="auto">
          <Formatted text={text} />
        </Element>
      ))}
    </tr>
  )
}

/** Parses the text only when it changes: while an answer is being written, only its last block does. */
function Formatted({ text }: { readonly text: string }) {
  const content = useMemo(() => parseInline(text), [text])
  return <Inlines content={content} />
}

interface InlinesProps {
  readonly content: readonly Inline[]
  readonly inLink?: boolean
}

const Inlines = ({ content, inLink = false }: InlinesProps) => (
  <>
    {content.map((node, index) => (
      <InlineView key={`${index} ${node.kind}`} node={node} inLink={inLink} />
    ))}
  </>
)

function InlineView({ node, inLink }: { readonly node: Inline; readonly inLink: boolean }) {
  switch (node.kind) {
    case 'text':
      return <>{showDirections(node.text)}</>
    case 'code':
      return <code>{showDirections(node.text)}</code>
    case 'strong':
      return (
        <strong>
          <Inlines content={node.content} inLink={inLink} />
        </strong>
      )
    case 'emphasis':
      return (
        <em>
          <Inlines content={node.content} inLink={inLink} />
        </em>
      )
    case 'strike':
      return (
        <del>
          <Inlines content={node.content} inLink={inLink} />
        </del>
      )
    case 'link':
    case 'image': {
      const { href, content, kind } = node
      const shown = content.length > 0 ? <Inlines content={content} inLink /> : href
      if (inLink) return <>{shown}</>
      return (
        <a href={href} target="_blank" rel="noopener noreferrer nofollow" title={href}>
          {kind === 'image' && 'Image: '}
          {shown}
        </a>
      )
    }
  }
}
