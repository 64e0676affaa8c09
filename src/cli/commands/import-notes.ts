import { disabledReason, type PreparedImport, type SecretStorage } from '../../admin/config/prepare-import.ts'
import type { ConfigProblem } from '../../config/problems.ts'
import { type Output, type Shell, shortPath } from '../kit.ts'

/** Prints what was done with the servers and their secrets. */
export function noteOf(prepared: PreparedImport, { note, warn }: Output, secrets: SecretStorage): void {
  for (const line of prepared.notes) note(line)
  if (prepared.secrets > 0 && secrets === 'file') {
    note(`Secrets (${prepared.secrets}) are stored in ${prepared.secretsFolder}, which only you can read.`)
  }
  for (const { name, waiting } of prepared.added) {
    if (waiting.length > 0)
      warn(`${name} is ${disabledReason(waiting)}. Provide what is missing, then remove \`disabled\`.`)
  }
  const mine = prepared.unset.filter((name) => prepared.added.every(({ waiting }) => !waiting.includes(name)))
  if (mine.length > 0) warn(`Set ${mine.join(', ')} before you start Toolway.`)
}

interface WithProblems {
  readonly problems: readonly ConfigProblem[]
}

export const allProblems = ({ problems, servers }: WithProblems & { servers: readonly WithProblems[] }) => [
  ...problems,
  ...servers.flatMap((server) => server.problems),
]

export function warnOfProblems(problems: readonly ConfigProblem[], { warn }: Output, shell: Shell): void {
  for (const { file, line, key, message } of problems) {
    const place = `${shortPath(file, shell)}${line === undefined ? '' : `:${line}`}`
    warn(`${place}: ${key === '' ? '' : `${key}: `}${message}; skipped`)
  }
}
