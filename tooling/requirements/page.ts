import { wrap } from '../error-pages/wrap.ts'
import { numbersOf, type Requirement, requirements } from './requirements.ts'
import { readTitles, type Title } from './titles.ts'

const introduction = `<!-- Generated from tooling/requirements and the titles of tests by \`npm run generate\`. -->

# Requirements

The requirements of Toolway, where they are implemented, and which tests name them. The list merges five designs, and
the letter of a requirement shows its origin: **F** tool forwarding through an inference server, **G** an agent gateway
with three meta-tools, **S** a staged, schema-constrained chat loop, **J** a job executor with sinks and adapters, **T**
call proxying for a tool registry. **B** goes beyond these five, **E** is the error format, **V** was added in 0.2 and **W** in 0.3.
Numbers are stable: test titles and commit messages cite them.

*Server*: an MCP server that Toolway connects to. *Agent*: the identity whose rules apply to a caller. *Entry*: a tool,
resource or prompt in the catalog, whatever its source. *Native*: implemented inside Toolway. *Forwarded*: implemented by
a server. *Caller*: an authenticated connection, acting as one agent. Reserved server names: \`native\` (our own tools),
\`toolway\` (meta-tools), \`sink\`; rules, limits and audit name them like any server. Our keys in \`_meta\` start with
\`dev.toolway/\`. The names in this list (parameters, fields, codes, metrics, commands) are a contract that scripts can
rely on.`

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

const inWords = { met: 'met', partly: 'partly met', open: 'open' } as const satisfies Record<
  Requirement['state'],
  string
>

/** The number of requirements in each state. */
function summary(all: readonly Requirement[]): string {
  const counts = Map.groupBy(all, ({ state }) => state)
  const parts = [...counts].map(([state, { length }]) => `${length} ${inWords[state]}`)
  return wrap(
    `${all.length} requirements: ${parts.join(', ')}. The table counts the titles of tests and test groups that name each requirement.`,
  )
}

function contents(all: readonly Requirement[], titles: readonly Title[]): string {
  const rows = all.map((requirement) => {
    const { number, about, state } = requirement
    const { length } = naming(requirement, titles)
    return `| [${number}](#${anchorOf(number)}) | ${about} | ${state === 'met' ? state : `**${inWords[state]}**`} | ${length} |`
  })
  return ['| number | title | state | test titles |', '| --- | --- | --- | --- |', ...rows].join('\n')
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
      wrap(`${capital(inWords[state])}${remark === undefined ? '.' : `. ${remark}`}`, '- ', '  '),
      wrap(`See ${metBy.map((path) => `[\`${path}\`](../${path})`).join(', ')}.`, '- ', '  '),
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
  const folders = Map.groupBy(files, ([file]) => file.split('/').slice(0, -1).slice(0, 2).join('/'))
  const lines = [...folders].map(([folder, members]) => {
    const links = members.map(([file, { length }]) => {
      const name = file.slice(folder.length + 1).replace(/(?:\.test)?\.ts$/, '')
      return `[${name}](../${file})${length > 1 ? ` ${length}×` : ''}`
    })
    return wrap(`\`${folder}\`: ${links.join(', ')}`, '  - ', '    ')
  })
  return [`- Named by ${titles.length} test titles in ${files.size} files:`, ...lines]
}

const capital = (word: string): string => word.charAt(0).toUpperCase() + word.slice(1)
