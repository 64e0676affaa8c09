import { execFileSync } from 'node:child_process'
import { closeSync, constants, openSync, writeSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { Socket } from 'node:net'
import { join } from 'node:path'
import type { Commands, Outcome } from '../../fixtures/commands/commands.ts'

/**
 * Lets scripts run command lines in a process that is there already. A script writes its command line to a file, writes
 * a line to one named pipe, waits for a line from another, and then executes the answer, which prints what the command
 * has printed and exits as it did. Returns these steps as a script in the language of `sh`.
 */
export function offerCommands(commands: Commands, folder: string, open: AsyncDisposableStack): string {
  const [asked, done, request, answer] = ['asked', 'done', 'request', 'answer'].map((name) => join(folder, name)) as [
    ...[string, string, string, string],
  ]
  execFileSync('mkfifo', [asked, done])
  // Open in both directions, so that neither side waits for the other in order to open.
  const both = constants.O_RDWR | constants.O_NONBLOCK
  const questions = new Socket({ fd: openSync(asked, both), readable: true, writable: false })
  // Not a socket, which would read its own lines.
  const answers = openSync(done, both)
  open.defer(() => {
    questions.destroy()
    closeSync(answers)
  })
  questions.on('data', async () => {
    const [cwd = '', umask = '', count = '', ...rest] = (await readFile(request, 'utf8')).split('\0')
    const words = rest.slice(0, Number(count))
    const variables = rest.slice(words.length, -1).map((one) => /^([^=]*)=(.*)$/s.exec(one)?.slice(1) as string[])
    const script = await commands
      .run({ words, cwd, umask, env: Object.fromEntries(variables) })
      .then(scriptOf, (error) => `echo ${quoted(String(error))}; exit 70\n`)
    await writeFile(answer, script)
    writeSync(answers, '\n')
  })
  return `{ printf '%s\\0' "$PWD" "$(umask)" "$#" "$@"; env -0; } > '${request}'
echo > '${asked}'
read -r _ < '${done}'
. '${answer}'`
}

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`

const scriptOf = ({ code, printed }: Outcome): string =>
  [
    ...printed.map(({ to, text }) => `printf %s ${quoted(text)}${to === 'stderr' ? ' >&2' : ''}`),
    `exit ${code}\n`,
  ].join('\n')
