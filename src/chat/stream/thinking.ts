export interface TextPart {
  readonly kind: 'text' | 'thinking'
  readonly text: string
}

const thinkStart = '<think>'
const thinkEnd = '</think>'
/** Stop looking for thinking after this much whitespace. */
const maxBlank = 1_024

/**
 * Separates thinking from the answer, for servers that leave it in the text. Recognizes thinking only at the start of
 * an answer, because tags further on may be quoted.
 */
export function createThinkingSplitter() {
  let state: 'beginning' | 'thinking' | 'after' | 'text' = 'beginning'
  let kept = ''

  const step = (): readonly TextPart[] => {
    if (state === 'text') return take('text', kept.length)
    if (state === 'beginning') {
      const start = kept.trimStart()
      if (start.startsWith(thinkStart)) {
        kept = start.slice(thinkStart.length)
        state = 'thinking'
        return step()
      }
      if (thinkStart.startsWith(start) && kept.length <= maxBlank) return []
      state = 'text'
      return step()
    }
    if (state === 'thinking') {
      const end = kept.indexOf(thinkEnd)
      if (end < 0) return take('thinking', kept.length - tagOverlap(kept, thinkEnd))
      const thought = take('thinking', end)
      kept = kept.slice(thinkEnd.length)
      state = 'after'
      return [...thought, ...step()]
    }
    kept = kept.trimStart()
    if (kept === '') return []
    state = 'text'
    return step()
  }

  const take = (kind: TextPart['kind'], length: number): readonly TextPart[] => {
    const text = kept.slice(0, length)
    kept = kept.slice(length)
    return text === '' ? [] : [{ kind, text }]
  }

  return {
    push(piece: string): readonly TextPart[] {
      kept += piece
      return step()
    },
    /** Returns the text that is still held back at the end of the answer. */
    end: () => take(state === 'thinking' ? 'thinking' : 'text', kept.length),
  }
}

/** How many characters at the end of the text may be the start of a tag. */
function tagOverlap(text: string, mark: string): number {
  for (let length = Math.min(text.length, mark.length - 1); length > 0; length--)
    if (text.endsWith(mark.slice(0, length))) return length
  return 0
}

/**
 * Separates thinking that has only a closing tag, because the chat template contains the opening one. This can be seen
 * only in a complete text. The tag must begin or end a line, because it may be quoted.
 */
export function splitUnopenedThinking(whole: string): { readonly text: string; readonly thinking: string } {
  const end = /\n[ \t]*<\/think>|<\/think>[ \t]*\r?\n/.exec(whole)
  const thinking = whole.slice(0, end?.index)
  if (!end || thinking.includes('<think') || /^\s*[{[`"]/.test(thinking)) return { text: whole, thinking: '' }
  return { text: whole.slice(end.index + end[0].length).trimStart(), thinking }
}

/** Separates thinking from the answer in a complete text. */
export function splitThinking(whole: string): { readonly text: string; readonly thinking: string } {
  const splitter = createThinkingSplitter()
  const parts = [...splitter.push(whole), ...splitter.end()]
  const joined = (kind: TextPart['kind']) => parts.map((part) => (part.kind === kind ? part.text : '')).join('')
  return { text: joined('text'), thinking: joined('thinking') }
}
