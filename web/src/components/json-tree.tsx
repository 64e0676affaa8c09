import { ExactNumber } from '../format/exact-json.ts'
import { pluralize } from '../format/number.ts'
import { showDirections } from '../format/show-directions.ts'
import './json-tree.css'

interface TreeProps {
  readonly value: unknown
  readonly name?: string
  /** The number of levels that are expanded initially. */
  readonly open?: number
}

/** A JSON value, shown as a collapsible tree. */
export function JsonTree({ value, name, open = 2 }: TreeProps) {
  if (typeof value !== 'object' || value === null || value instanceof ExactNumber) {
    return (
      <div class="tree-leaf">
        {name !== undefined && <span class="tree-name">{showDirections(name)}: </span>}
        <Leaf value={value} />
      </div>
    )
  }
  const list = Array.isArray(value)
  const members = Object.entries(value)
  if (members.length === 0) return <JsonLeafText name={name} text={list ? '[]' : '{}'} />
  const body = (
    <div class="tree-members">
      {members.map(([key, member]) => (
        <JsonTree key={key} name={key} value={member} open={open - 1} />
      ))}
    </div>
  )
  if (name === undefined) return <div class="tree">{body}</div>
  return (
    <details class="tree-branch" open={open > 0}>
      <summary>
        <span class="tree-name">{showDirections(name)}</span>
        <span class="quiet small"> {pluralize(members.length, list ? 'item' : 'key')}</span>
      </summary>
      {body}
    </details>
  )
}

function JsonLeafText({ name, text }: { readonly name: string | undefined; readonly text: string }) {
  return (
    <div class="tree-leaf">
      {name !== undefined && <span class="tree-name">{showDirections(name)}: </span>}
      <span class="quiet">{text}</span>
    </div>
  )
}

function Leaf({ value }: { readonly value: unknown }) {
  if (typeof value === 'string') return <bdi class="tree-text">{value === '' ? '""' : showDirections(value)}</bdi>
  return <span class="tree-word">{String(value)}</span>
}
