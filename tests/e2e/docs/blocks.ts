/**
 * What is in the pages of docs/ and in README.md is run, or at least checked. The word behind a fence's language says
 * how; readers do not see it:
 *
 *     ```sh test            run by `sh -e`; it must end with 0
 *     ```sh test exit=4     … with 4
 *     ```sh test serve      … until the story is over; the story goes on as soon as it listens
 *     ```sh no-test         cannot be run here: only its `toolway` commands are checked, as in every other block
 *     ```text output        all that the block above has printed; `…` stands for anything, alone for any lines
 *     ```yaml NAME          written to the file NAME before the story goes on; `~/` is the home folder
 *     ```yaml               a configuration, or a part of one: it must load
 *     ```yaml no-test       is for another program
 *
 * A page is one story, told from top to bottom in a fresh folder with a fresh home. `<!-- fresh folder -->` begins
 * another one. `<!-- continues PAGE -->` at the top of a page: its story goes on where that of the other page ends.
 */

export interface Block {
  /** The line of its fence. */
  readonly line: number
  readonly language: string
  readonly marks: readonly string[]
  readonly text: string
}

/** The blocks of each story of a page. */
export function storiesOf(markdown: string): Block[][] {
  const stories: Block[][] = [[]]
  let open: { line: number; info: string; text: string } | undefined
  for (const [index, line] of markdown.split('\n').entries()) {
    const fence = /^```(.*)$/.exec(line)
    if (open && fence) {
      const [language = '', ...marks] = open.info.split(/\s+/)
      stories.at(-1)?.push({ line: open.line, language, marks, text: open.text })
      open = undefined
    } else if (open) open.text += `${line}\n`
    else if (fence) open = { line: index + 1, info: fence[1] as string, text: '' }
    else if (line === '<!-- fresh folder -->') stories.push([])
  }
  if (open) throw new Error(`the fence in line ${open.line} is never closed`)
  return stories
}

/** The name of the file that a block is. */
export const fileOf = ({ marks }: Block): string | undefined => marks.find((mark) => /[./]/.test(mark))

/** Whether two texts are the same but for what `…` stands for, and for how wide the columns of a table are. */
export function isOutput(expected: string, printed: string): boolean {
  const narrow = (text: string) =>
    text
      .replaceAll(/[ \t]+/g, ' ')
      .replaceAll(/ $/gm, '')
      .trimEnd()
  const literal = (text: string) => text.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&')
  const lines = narrow(expected).split('\n')
  const patterns = lines.map((line) => (line === '…' ? '(?:.*\n)*?' : `${line.split('…').map(literal).join('.*')}\n`))
  return new RegExp(`^${patterns.join('')}$`).test(`${narrow(printed)}\n`)
}
