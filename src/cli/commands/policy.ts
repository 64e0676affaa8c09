import type { AuditRecord } from '../../audit/record.ts'
import { loadConfig } from '../../config/load.ts'
import type { PolicyChange, Replayed } from '../../policy/replay.ts'
import { type ReplayedPolicy, recordsInArchive, recordsInFolder, replayRecords } from '../../runtime/policy-replay.ts'
import type { OptionsOf } from '../command-table.ts'
import { createOutput, createProgress, type ExitCode, exit, type Output, type Shell } from '../kit.ts'
import { load } from '../load.ts'
import { askArchive, auditFolder, filterOf, hasRecords } from './audit/select-log.ts'

/** Applies a proposed policy to recorded calls and shows which decisions would change. */
export async function replayPolicy(shell: Shell, options: OptionsOf<'policy replay'>): Promise<ExitCode> {
  const output = createOutput(shell, options.json)
  const proposed = await proposalOf(shell, options)
  const filter = filterOf(options)
  const replayed = options.postgres
    ? await askArchive(shell, options, (archive) => replay(recordsInArchive(archive, filter), proposed, shell))
    : await replayFolder(await auditFolder(shell, options))
  if (options.json) output.value(replayed)
  else print(replayed, output)
  return options.strict && replayed.denied.length + replayed.gone.length > 0 ? exit.refused : exit.ok

  async function replayFolder(folder: string): Promise<Replayed> {
    if (!hasRecords(folder, output, shell)) return { calls: 0, denied: [], allowed: [], gone: [] }
    return replay(recordsInFolder(folder, filter), proposed, shell)
  }
}

/** The proposed configuration. If it has no servers, the current servers are added to it. */
async function proposalOf(shell: Shell, options: OptionsOf<'policy replay'>): Promise<ReplayedPolicy> {
  const { config } = await loadConfig({ paths: [options.policy], env: shell.env, cwd: shell.cwd })
  if (Object.keys(config.mcpServers).length > 0) return { config, serversProposed: true }
  const { mcpServers } = (await load(shell, options)).config
  return { config: { ...config, mcpServers }, serversProposed: false }
}

async function replay(records: AsyncIterable<AuditRecord>, proposed: ReplayedPolicy, shell: Shell): Promise<Replayed> {
  using progress = createProgress(shell)
  const { complete: _, ...replayed } = await replayRecords(records, proposed, {
    signal: shell.interrupted,
    progress: (done) => progress.show(`Replaying: ${done.records} records …`),
  })
  return replayed
}

function print({ calls, denied, allowed, gone }: Replayed, output: Output): void {
  const { print, paint, note } = output
  const total = (changes: readonly PolicyChange[]) => changes.reduce((sum, change) => sum + change.calls, 0)
  section('would now be denied', 'red', denied)
  section('would no longer exist', 'red', gone)
  section('would now be allowed', 'green', allowed)
  if (denied.length + gone.length + allowed.length > 0) print('')
  const counts = [`${total(denied)} would now be denied`, `${total(allowed)} would now be allowed`]
  if (gone.length > 0) counts.push(`${total(gone)} would fail because the tool no longer exists`)
  note(`${calls} recorded calls: ${counts.join(', ')}.`)

  function section(title: string, colour: 'red' | 'green', changes: readonly PolicyChange[]): void {
    if (changes.length === 0) return
    print(paint(colour, title))
    output.table<PolicyChange>(changes, [
      { title: 'CALLS', value: (change) => String(change.calls) },
      { title: 'AGENT', value: ({ agent }) => agent },
      { title: 'TOOL', value: ({ server, tool }) => `${server}.${tool}`, whole: true },
      { title: 'RULE', value: ({ after }) => after },
      { title: 'BEFORE', value: ({ before }) => before ?? '' },
      { title: 'LAST', value: ({ last }) => last.slice(0, 16).replace('T', ' ') },
    ])
  }
}
