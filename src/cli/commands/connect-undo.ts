import type { ClientFile } from '../../clients/places.ts'
import { clientLabels } from '../../config/import/client-kind.ts'
import { type ExitCode, exit } from '../exit.ts'
import { short } from '../home.ts'
import type { Output } from '../output.ts'
import type { Shell } from '../shell.ts'
import { connectionsOf } from './connect-state.ts'

/** Puts a client's file back as it was before it was connected, to the byte. */
export async function undo(
  shell: Shell,
  { client, path }: ClientFile,
  force: boolean,
  output: Output,
): Promise<ExitCode> {
  const { restored, forced, kept } = await connectionsOf(shell).undo(client, path, force)
  if (output.json) {
    output.value({ client, file: path, undone: true, restored, forced, kept: kept ?? null })
    return exit.ok
  }
  const file = short(path, shell)
  output.print(
    restored ? `${file} of ${clientLabels[client]} is as it was.` : `${file} is gone again: there was none before.`,
  )
  if (forced) {
    output.note(
      output.paintNote('yellow', `It had been changed since; that is lost${kept ? `, but a copy is in ${kept}` : ''}.`),
    )
  }
  return exit.ok
}
