import { once } from 'node:events'
import type { Config } from '../../config/schema.ts'
import { systemClock } from '../../core/clock.ts'
import type { Gateway } from '../../gateway.ts'
import { version } from '../../version.ts'
import { banner } from '../banner.ts'
import { type ExitCode, exit } from '../exit.ts'
import { releaseWhenIdle } from '../idle-memory.ts'
import type { CommonOptions } from '../load.ts'
import { openWatching } from '../open.ts'
import { createOutput } from '../output.ts'
import { near, type Shell, spelling } from '../shell.ts'

export interface ServeOptions extends CommonOptions {
  readonly host?: string
  readonly port?: number
  readonly watch?: boolean
}

/** Serves over HTTP until it is told to stop. */
export async function serve(shell: Shell, options: ServeOptions): Promise<ExitCode> {
  await using gateway = await openWatching(shell, options, {
    change: (config) => listeningOn(config, options),
    print: (text) => void shell.stdout.write(text),
  })
  using _releasing = releaseWhenIdle(systemClock)
  const { url, port } = await gateway.listen()
  const output = createOutput(shell, options.json)
  if (options.json) {
    shell.stdout.write(JSON.stringify({ event: 'listening', url, port, token: gateway.token ?? null }) + '\n')
  } else {
    output.note(banner(factsOf(gateway, url, shell), output.paintNote))
  }
  if (!shell.interrupted.aborted) await once(shell.interrupted, 'abort')
  if (!options.json) output.note(output.paintNote('dim', 'Stopping; once more to leave at once.'))
  return exit.ok
}

const listeningOn = (config: Config, { host, port }: ServeOptions): Config => ({
  ...config,
  server: { ...config.server, ...(host !== undefined && { host }), ...(port !== undefined && { port }) },
})

function factsOf({ loaded, token, view, local, servers }: Gateway, url: string, { cwd, env, stderr }: Shell) {
  const tools = view(local).list('tool')
  const toolsOf = (source: string) => tools.filter(({ entry }) => entry.server === source).length
  const tokenGenerated = loaded.config.auth.token === 'generated'
  return {
    version,
    url,
    servers: Object.values(loaded.config.mcpServers).filter(({ disabled }) => !disabled).length,
    nativeTools: servers().find(({ name }) => name === 'native')?.tools ?? 0,
    metaTools: toolsOf('toolway'),
    // The operator's own token need not get into whatever collects the output of services.
    token: token === undefined || tokenGenerated || stderr.isTTY ? token : 'YOUR_TOKEN',
    tokenGenerated,
    files: loaded.files.map(({ path }) => near(path, cwd)),
    inactive: loaded.inactive.map(({ key }) => key),
    command: spelling(env),
  }
}
