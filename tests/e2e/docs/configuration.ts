import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { parse } from 'yaml'
import { type LoadedConfig, loadConfig } from '../../../src/config/load.ts'
import { temporaryFolder } from '../../fixtures/folders.ts'

interface Written {
  readonly mcpServers?: Readonly<Record<string, { readonly command?: string; readonly url?: string }>>
}

/**
 * Loads a configuration as a page shows it. What the reader has besides is made up: variables, files with secrets, and
 * how to reach a server of which only a part is shown.
 */
export async function loadShown(yaml: string): Promise<LoadedConfig> {
  await using folder = await temporaryFolder()
  const shown = join(folder.path, 'shown.yaml')
  const besides = join(folder.path, 'besides.json')
  for (const [, name = ''] of yaml.matchAll(/\$\{file:([^}]+)\}/g)) {
    const path = join(folder.path, name.replace(/^~\//, ''))
    await mkdir(dirname(path), { recursive: true })
    await writeFile(path, 'secret', { mode: 0o600 })
  }
  await writeFile(shown, yaml)
  await writeFile(besides, JSON.stringify({ mcpServers: reachable(parse(yaml)) }))
  const variables = [...yaml.matchAll(/\$\{(?:env:)?(\w+)\}/g)].map(([, name]) => [name, 'variable'] as const)
  const env = { ...Object.fromEntries(variables), HOME: folder.path }
  return await loadConfig({ paths: [besides, shown], env, cwd: folder.path })
}

const reachable = ({ mcpServers = {} }: Written): object =>
  Object.fromEntries(
    Object.entries(mcpServers)
      .filter(([, { command, url }]) => command === undefined && url === undefined)
      .map(([name]) => [name, { command: 'true' }]),
  )
