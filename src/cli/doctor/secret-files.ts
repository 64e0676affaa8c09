import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { secretsOf } from '../../audit/redact/secrets.ts'
import type { LoadedConfig } from '../../config/load.ts'
import { type Check, type Finding, ok, warning } from './finding.ts'
import { octal, privateFile } from './private-file.ts'
import { quoted } from './words.ts'

/** Whether the other secrets on disk are for their owner alone: what the gateway keeps, and what the configuration spells out. */
export const secretFilesCheck = ({ config, files }: LoadedConfig, short: (path: string) => string): Check => ({
  name: 'credentials.files',
  async run() {
    const { path: folder } = config.stores
    const kept = [
      { name: 'seal', what: 'the key of sealed answers' },
      { name: 'audit-key', what: 'the key of the audit log' },
    ].map(({ name, what }) => ({ path: join(folder, name), shown: short(join(folder, name)), what }))
    const secrets = secretsOf(config)
    const found = await Promise.all([
      ...kept.map(async (file) => (await privateFile(file)).finding),
      ...files.map(({ path }) => spelledOut(path, short(path), secrets)),
    ])
    const findings = found.filter((finding) => finding !== undefined)
    return findings.length > 0 ? findings : ok('what is secret is for its owner alone')
  },
})

/** A configuration with secrets in it is as private as they are. */
async function spelledOut(path: string, shown: string, secrets: readonly string[]): Promise<Finding | undefined> {
  const { mode } = await stat(path)
  if (process.platform === 'win32' || (mode & 0o044) === 0) return undefined
  const text = await readFile(path, 'utf8')
  if (!secrets.some((secret) => text.includes(secret))) return undefined
  return warning(`${shown} spells out secrets and is open to others (mode ${octal(mode)})`, `chmod 600 ${quoted(path)}`)
}
