import { showDirections } from '../format/show-directions.ts'

interface ForeignTextProps {
  readonly text: string
  readonly class?: string
  readonly id?: string
}

/** A paragraph from a server or a model, in the direction of its first letter. Nothing if it is empty. */
export const ForeignText = ({ text, ...attributes }: ForeignTextProps) =>
  text === '' ? null : (
    <p dir="auto" {...attributes}>
      {showDirections(text)}
    </p>
  )

/** The second line of a cell: a text like that. */
export const ForeignLine = ({ text }: { readonly text: string }) =>
  text === '' ? null : (
    <span class="sub" dir="auto">
      {showDirections(text)}
    </span>
  )
