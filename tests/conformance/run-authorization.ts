import { spawn } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { temporaryFolder } from '../fixtures/folders.ts'
import { unusedPort } from '../fixtures/listening.ts'
import { type Check, installedSuite, output } from './run.ts'

/** The names of the suite's scenarios for servers and for authorization servers, whichever revision they belong to. */
export async function listScenarios(): Promise<Record<'servers' | 'authorizationServers', string[]>> {
  const sections = (await output([installedSuite(), 'list'])).split(/^(?=\S)/m)
  const under = (heading: string) => {
    const section = sections.find((text) => text.startsWith(heading)) ?? ''
    return [...section.matchAll(/^ {2}- (\S+)/gm)].map(([, name]) => name as string)
  }
  return { servers: under('Server scenarios'), authorizationServers: under('Authorization server scenarios') }
}

/** Runs the scenarios for authorization servers. The suite waits for somebody to open the address that it prints. */
export async function runAuthorization(options: {
  readonly issuer: string
  readonly resource: string
  visit(url: string): Promise<unknown>
}): Promise<Check[]> {
  await using results = await temporaryFolder()
  const port = String(await unusedPort())
  const words = ['--url', options.issuer, '--client-id', 'conformance', '--resource', options.resource, '--port', port]
  const child = spawn(process.execPath, [installedSuite(), 'authorization', ...words, '-o', results.path], {
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  let address: string | undefined
  let isListening = false
  for await (const line of createInterface({ input: child.stdout })) {
    if (/^https?:.*code_challenge=/.test(line)) address = line
    // On a busy machine it listens a while after it has printed the address, which leads back to it.
    if (line.startsWith('Callback server started')) isListening = true
    if (address === undefined || !isListening) continue
    await options.visit(address)
    address = undefined
  }
  const files = globSync('**/checks.json', { cwd: results.path })
  return files.flatMap((file) => JSON.parse(readFileSync(join(results.path, file), 'utf8')) as Check[])
}
