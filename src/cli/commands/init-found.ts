import type { FoundFile } from '../../clients/discover.ts'
import { clientLabels } from '../../config/import/client-kind.ts'
import type { ConfigProblem } from '../../config/problems.ts'
import { short } from '../home.ts'
import type { Output } from '../output.ts'
import type { Shell } from '../shell.ts'
import { table } from '../table.ts'
import { count, type Prepared } from './import-prepare.ts'

const problemsOf = ({ content }: FoundFile): ConfigProblem[] => [
  ...content.problems,
  ...content.servers.flatMap(({ problems }) => problems),
]

/** Shows which clients were found, with what, and what is wrong with it. */
export function printFound(found: readonly FoundFile[], prepared: Prepared, output: Output, shell: Shell): void {
  const { print, note, paint, paintNote, width } = output
  if (found.length === 0) {
    note('No client on this machine has any servers yet.')
    return
  }
  const lines = table<FoundFile>(
    [
      { title: 'CLIENT', value: ({ client }) => clientLabels[client], whole: true },
      { title: 'FILE', value: ({ path }) => short(path, shell), style: (cell) => paint('dim', cell) },
      { title: 'SERVERS', value: ({ content }) => content.servers.map(({ name }) => name).join(', ') },
      {
        title: 'PROBLEMS',
        value: (file) => {
          const number = problemsOf(file).length
          return number === 0 ? '' : count(number, 'problem')
        },
        style: (cell) => paint('yellow', cell),
      },
    ],
    found,
    { width, heading: (title) => paint('dim', title) },
  )
  for (const line of lines) print(line)
  print('')
  for (const file of found) {
    for (const { line, key, message } of problemsOf(file)) {
      const place = `${short(file.path, shell)}${line === undefined ? '' : `:${line}`}`
      note(paintNote('yellow', `${place}: ${key === '' ? '' : `${key}: `}${message}; left out`))
    }
    for (const warning of file.content.warnings) note(paintNote('yellow', `${clientLabels[file.client]}: ${warning}`))
  }
  if (prepared.added.length === 0) note('None of these servers can be used, so a starter is written.')
}
