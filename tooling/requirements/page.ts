import { wrap } from '../error-pages/wrap.ts'
import { numbersOf, type Requirement, requirements } from './requirements.ts'
import { readTitles, type Title } from './titles.ts'

const introduction = `<!-- Generated from tooling/requirements and the titles of tests by \`npm run generate\`. -->

# Requirements

What Toolway must do, where that is done, and which tests name it. Five designs were merged into this one list, and each
requirement keeps the letter of the one it comes from: **F** tool forwarding through an inference server, **G** an agent
gateway with three meta-tools, **S** a staged, schema-constrained chat loop, **J** a job executor with sinks and adapters,
**T** call proxying for a tool registry; **B** is beyond all five, **E** is the form of errors. Numbers are stable: titles of
tests and messages of commits cite them.

*Server*: an MCP server that Toolway connects to. *Agent*: the caller, as policy sees it. *Entry*: one callable thing in
the catalog (tool, resource, prompt), wherever it comes from. *Native*: implemented inside Toolway. *Forwarded*: implemented
by a server. *Caller*: an authenticated connection, acting as one agent. Reserved server names: \`native\` (our own tools),
\`toolway\` (meta-tools), \`sink\`; rules, limits and audit name them like any server. Our keys in \`_meta\` start with
\`dev.toolway/\`. The names in this list (parameters, fields, codes, metrics, commands) are a contract: other people's scripts
rely on them.`

/** The page, in Markdown. */
export function requirementsPage(titles: readonly Title[] = readTitles()): string {
  const all = requirements.flatMap(({ requirements }) => requirements)
  return `${[
    introduction,
    summary(all),
    contents(all, titles),
    ...requirements.flatMap(({ section, requirements }) => [
      `## ${section}`,
      ...requirements.flatMap((requirement) => chapter(requirement, titles)),
    ]),
  ].join('\n\n')}\n`
}

/** How many stand where; what is nowhere is not told. */
function summary(all: readonly Requirement[]): string {
  const counts = Map.groupBy(all, ({ state }) => state)
  const told = [...counts].map(([state, { length }]) => `${length} ${state}`)
  return wrap(
    `Of ${all.length} requirements, ${told.join(', ')}. The titles that name one are those of single tests and of whole groups.`,
  )
}

function contents(all: readonly Requirement[], titles: readonly Title[]): string {
  const rows = all.map((requirement) => {
    const { number, about, state } = requirement
    const { length } = naming(requirement, titles)
    return `| [${number}](#${anchorOf(number)}) | ${about} | ${state === 'met' ? state : `**${state}**`} | ${length} |`
  })
  return ['| | about | state | titles of tests |', '| --- | --- | --- | --- |', ...rows].join('\n')
}

const anchorOf = (number: string): string => number.toLowerCase().replace('/', '')

function chapter(requirement: Requirement, titles: readonly Title[]): string[] {
  const { number, text, state, remark, metBy } = requirement
  return [
    `### ${number}`,
    text
      .split('\n')
      .map((paragraph) => wrap(paragraph, '> ', '> '))
      .join('\n>\n'),
    [
      wrap(`${capital(state)}${remark === undefined ? '.' : `. ${remark}`}`, '- ', '  '),
      wrap(`Look at ${metBy.map((path) => `[\`${path}\`](../${path})`).join(', ')}.`, '- ', '  '),
      ...proof(naming(requirement, titles)),
    ].join('\n'),
  ]
}

/** The titles that name a requirement, by any of its numbers. */
function naming(requirement: Requirement, titles: readonly Title[]): readonly Title[] {
  const own = numbersOf(requirement)
  return titles.filter(({ numbers }) => numbers.some((number) => own.includes(number)))
}

/** The files of these titles, by folder. */
function proof(titles: readonly Title[]): string[] {
  const files = Map.groupBy(titles, ({ file }) => file)
  const folders = Map.groupBy(files, ([file]) => file.split('/', 2).join('/'))
  const lines = [...folders].map(([folder, members]) => {
    const links = members.map(([file, { length }]) => {
      const name = file.slice(folder.length + 1).replace(/(?:\.test)?\.ts$/, '')
      return `[${name}](../${file})${length > 1 ? ` ${length}×` : ''}`
    })
    return wrap(`\`${folder}\`: ${links.join(', ')}`, '  - ', '    ')
  })
  return [`- Named by ${titles.length} titles in ${files.size} files:`, ...lines]
}

const capital = (word: string): string => word.charAt(0).toUpperCase() + word.slice(1)
