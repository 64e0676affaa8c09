import { clientLabels, kindOf } from '../../config/import/client-kind.ts'
import type { Definition } from '../../config/import/read-servers.ts'
import { type ExitCode, exit } from '../exit.ts'
import { createOutput, type Output } from '../output.ts'
import { type Shell, spelling } from '../shell.ts'
import { told } from '../told.ts'
import { UsageError } from '../usage.ts'
import { type DefinitionOptions, definitionOf, refuseName } from './add-definition.ts'
import { type Addition, planAddition } from './add-plan.ts'
import {
  type ConfigFile,
  type EditConfigOptions,
  openConfig,
  secretsLeft,
  showChange,
  takenOver,
  writeConfig,
} from './edit-config.ts'
import { noteOf } from './import-prepare.ts'

export interface AddOptions extends EditConfigOptions, DefinitionOptions {
  readonly force?: boolean
}

/** Adds one server to the configuration. */
export const addServer = (
  shell: Shell,
  name: string,
  words: readonly string[],
  options: AddOptions,
): Promise<ExitCode> => told(() => run(shell, name, words, options))

async function run(shell: Shell, name: string, words: readonly string[], options: AddOptions): Promise<ExitCode> {
  const { json, dryRun, force } = options
  refuseName(name)
  const definition = definitionOf(words, options)
  const file = await openConfig(shell, options)
  const replaced = file.text.names.includes(name)
  if (replaced && !force) {
    throw new UsageError(
      `${file.named} has a server ${name} already.`,
      'Replace it with --force, or take another name.',
    )
  }
  const addition = await planAddition(shell, file, name, definition)
  const output = createOutput(shell, json)
  const changes = addition.after !== file.before.text
  if (changes && !json && (dryRun || replaced)) showChange(file, addition.after, output)
  const written = changes && !dryRun
  if (written) {
    await addition.prepared.writeSecrets()
    await writeConfig(file, addition.after)
  }
  if (json) output.value(asJson(file, addition, { replaced, written }))
  else {
    const how = replaced ? `Replaced ${name} in` : `Added ${name} to`
    if (written) output.print(`${how} ${file.named}. ${takenOver}`)
    else if (!changes) output.print(`${name} is in ${file.named} like this already.`)
    tell(file, addition, output)
    const config = options.config ? ` --config ${file.named}` : ''
    if (written && addition.server.waiting.length === 0) {
      output.note(`Try it: ${spelling(shell.env)} doctor --server ${name}${config}`)
    }
  }
  return exit.ok
}

function tell(file: ConfigFile, { server, prepared }: Addition, output: Output): void {
  const { note, paintNote } = output
  const lost = settingsLost(file, server)
  const left = secretsLeft(file, server.name, server.definition)
  if (lost.length > 0) note(paintNote('yellow', `What it had besides is not in it any more: ${lost.join(', ')}.`))
  if (left.length > 0) note(`What it had as secrets is still in ${left.join(', ')}.`)
  noteOf(prepared, output, 'file')
  const client = kindOf(file.path)
  if (client && prepared.secrets > 0) {
    note(
      paintNote('yellow', `${clientLabels[client]} reads ${file.named}, too, and does not know what \${file:…} means.`),
    )
  }
}

const asJson = (file: ConfigFile, { server, prepared }: Addition, done: { replaced: boolean; written: boolean }) => ({
  file: file.path,
  name: server.name,
  lost: settingsLost(file, server),
  left: secretsLeft(file, server.name, server.definition),
  secrets: prepared.secrets,
  waiting: server.waiting,
  ...done,
})

/** What the command line says about a server. */
const said = ['command', 'args', 'env', 'url', 'transport', 'headers', 'cwd']

/** Settings of the server that was there and that nobody has said again. */
function settingsLost(
  { servers }: ConfigFile,
  { name, definition }: { name: string; definition: Definition },
): string[] {
  return Object.keys(servers.get(name) ?? {}).filter((key) => !said.includes(key) && !Object.hasOwn(definition, key))
}
