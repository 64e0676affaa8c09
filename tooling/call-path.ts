import { Session } from 'node:inspector/promises'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { rawSession } from '../tests/fixtures/raw-http.ts'
import { startToolway } from '../tests/fixtures/toolway.ts'

/**
 * Prints the files and functions of src/ that one warm `tools/call` runs through: `node tooling/call-path.ts [--list]`.
 * A client of the legacy era calls a tool of a real stdio server over HTTP. V8 counts function calls exactly; what runs
 * in only some of several calls (timers, health checks) is left out.
 */
const samples = 5
const source = join(import.meta.dirname, '../src')
const everything = fileURLToPath(import.meta.resolve('@modelcontextprotocol/server-everything/dist/index.js'))

await using gateway = await startToolway(
  { mcpServers: { everything: { command: process.execPath, args: [everything] } } },
  // As by default. The log of the tests would also log each call.
  { isLevelEnabled: (level) => level !== 'debug' },
)
const { answer } = await rawSession(gateway)
const call = () => answer('tools/call', { name: 'everything__echo', arguments: { message: 'hello' } })
for (let warm = 0; warm < 50; warm++) {
  const { error } = await call()
  if (error) throw new Error(`the call failed: ${JSON.stringify(error)}`)
}

const session = new Session()
session.connect()
await session.post('Profiler.enable')
await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })

/** The functions that ran since the last sample, as `file:name:offset`. */
async function ran(): Promise<Set<string>> {
  const { result } = await session.post('Profiler.takePreciseCoverage')
  const found = new Set<string>()
  for (const { url, functions } of result) {
    if (!url.startsWith('file:') || relative(source, fileURLToPath(url)).startsWith('..')) continue
    for (const { functionName, ranges } of functions) {
      const [range] = ranges
      // The body of the module itself ran when it was loaded.
      if (range && range.count > 0 && (functionName !== '' || range.startOffset > 0))
        found.add(`${relative(source, fileURLToPath(url))}:${functionName}:${range.startOffset}`)
    }
  }
  return found
}

let always: Set<string> | undefined
for (let sample = 0; sample < samples; sample++) {
  await ran()
  await call()
  const now = await ran()
  always = always ? always.intersection(now) : now
}
session.disconnect()

const functions = [...(always ?? [])].sort()
const byFile = Map.groupBy(functions, (name) => name.split(':', 1)[0] as string)
console.log(`one warm tools/call: ${byFile.size} files (at most 85), ${functions.length} functions`)
if (process.argv.includes('--list'))
  for (const [file, names] of byFile) console.log(`${String(names.length).padStart(4)} ${file}`)
process.exit()
