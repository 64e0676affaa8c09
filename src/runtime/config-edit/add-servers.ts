import { createRedactor } from '../../audit/redact/redactor.ts'
import { discover, type FoundFile } from '../../clients/client-files.ts'
import { adaptServer, called, type FoundServer, planImport } from '../../clients/import-plan.ts'
import { readServers, type ServerDefinition } from '../../config/import/read-servers.ts'
import { invalidArguments } from '../../core/errors.ts'
import { homeOf } from '../../core/home.ts'
import { asRecord } from '../../lib/is-record.ts'
import type { ConfigEdit } from '../../serve/admin/contract.ts'
import { type ConfigChange, createConfigEditor, type Proposal } from './config-editor.ts'
import { type ConfigSource, openEditedFile } from './config-file.ts'
import { createEditHistory } from './edit-history.ts'
import { type Pasted, readPasted } from './pasted-servers.ts'
import { type asWritten, disabledReason, missingIn, resolveIn } from './prepare-import.ts'

export interface ProposalRequest {
  readonly source: ConfigSource
  readonly edit: ConfigEdit
  /** What is redacted: known secrets, and keys. */
  readonly redacted: { readonly secrets: readonly string[]; readonly keys: readonly string[] }
  /** The state folder, which contains the history. */
  readonly folder: string
  readonly key: string
}

/** What an edit of the admin API would change, whichever way it says what to add. */
export async function proposeEdit(request: ProposalRequest): Promise<Proposal & { readonly notes: readonly string[] }> {
  const { source, key, folder, edit } = request
  const redactor = createRedactor(request.redacted)
  const history = createEditHistory(folder)
  const editor = createConfigEditor({ source, redactor: () => redactor, history, key, now: () => 0 })
  const { add, import: choices, changes, text, was, undo = '' } = edit
  const added = add ? await additionOf(add, source) : choices && (await importOf(choices, source))
  const wanted = added ?? (changes ? { changes } : text === undefined ? { undo } : { text, was })
  return { ...(await editor.propose(wanted)), notes: added?.notes ?? [] }
}

interface Additions {
  readonly changes: readonly ConfigChange[]
  readonly notes: readonly string[]
}

/** A server in a client's file. */
export interface ImportChoice {
  readonly file: string
  readonly name: string
}

/** The changes that add pasted servers; those in `oauth` with OAuth. */
export async function additionOf(
  { oauth = [], ...pasted }: Pasted & { readonly oauth?: readonly string[] | undefined },
  source: ConfigSource,
): Promise<Additions> {
  const { path, known } = await target(source)
  if (pasted.name !== undefined && known.has(pasted.name)) {
    throw invalidArguments(`There is already a server named ${pasted.name}.`)
  }
  const found = await readPasted(pasted, source, path)
  const added = await additions(found.map(renamed(known)), known, source, () => undefined)
  const auth = { type: 'oauth' }
  const changes = added.changes.map((change) =>
    oauth.includes(String(change.path[1])) ? { ...change, value: { ...asRecord(change.value), auth } } : change,
  )
  return { ...added, changes }
}

/** The changes that add servers from the files of MCP clients. */
export async function importOf(choices: readonly ImportChoice[], source: ConfigSource): Promise<Additions> {
  const { path, known } = await target(source)
  const files = await clientServers(source)
  const found = choices.map(({ file, name }): FoundServer => {
    const from = files.find((one) => one.path === file)
    const server = from?.content.servers.find((one) => one.name === name)
    if (!from || !server)
      throw invalidArguments(`There is no server ${JSON.stringify(name)} in ${JSON.stringify(file)}.`)
    const [problem] = server.problems
    if (problem) throw invalidArguments(`${name} cannot be imported: ${problem.message}.`)
    return adaptServer(server, from, path)
  })
  return additions(found, known, source, (server) => `from ${[...new Set(server.origins.map(called))].join(', ')}`)
}

/** The files of the MCP clients on this machine. */
export const clientServers = ({ env, cwd }: ConfigSource): Promise<FoundFile[]> =>
  discover({ env, cwd, platform: process.platform })

async function target(source: ConfigSource) {
  const { path, before } = await openEditedFile(source)
  const servers = before.bytes ? (await readServers(path, homeOf(source.env))).servers : []
  return { path, known: new Map(servers.map(({ name, definition }) => [name, definition])) }
}

const renamed =
  (known: ReadonlyMap<string, ServerDefinition>) =>
  (server: FoundServer): FoundServer => {
    let name = server.name
    for (let number = 2; known.has(name); number++) name = `${server.name.slice(0, 60)}-${number}`
    return { ...server, name }
  }

type Planned = Parameters<typeof asWritten>[0]

async function additions(
  found: readonly FoundServer[],
  known: ReadonlyMap<string, ServerDefinition>,
  { env }: ConfigSource,
  origin: (server: Planned) => string | undefined,
): Promise<Additions> {
  // Secrets stay inline here; the editor moves them to private files.
  const keep = async (secret: string) => secret
  const plan = await planImport(found, {
    known,
    find: () => [],
    keep,
    missing: missingIn(env),
    resolve: resolveIn(env),
  })
  const changes = plan.added.map((server): ConfigChange => {
    const reason = server.waiting.length > 0 ? disabledReason(server.waiting) : undefined
    const comment = [origin(server), reason].filter((part) => part !== undefined).join('; ')
    return {
      path: ['mcpServers', server.name],
      value: server.definition,
      comment: comment === '' ? undefined : comment,
    }
  })
  const waiting = plan.added.filter((server) => server.waiting.length > 0)
  return {
    changes,
    notes: [
      ...plan.notes,
      ...plan.present.map((name) => `This server is already in the configuration as ${name}.`),
      ...waiting.map((server) => `${server.name} is ${disabledReason(server.waiting)}.`),
    ],
  }
}
