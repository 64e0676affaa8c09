import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Keep } from './secrets.ts'

/** A secret that is to be written into a file of its own. */
export interface SecretFile {
  readonly path: string
  readonly secret: string
}

export interface FileKeeper {
  readonly keep: Keep
  /** What has to be written for the references to hold; a file that has the secret already is not among them. */
  readonly files: readonly SecretFile[]
}

/** Each secret in a file of its own in `folder`, which references spell as `spelt`. Nothing is written yet. */
export function fileKeeper(folder: string, spelt: string): FileKeeper {
  const taken = new Map<string, string>()
  const files: SecretFile[] = []
  const keep: Keep = async (secret, server, key) => {
    const stem = `${server}.${key}`.replace(/[^\w.-]+/g, '-').slice(0, 120)
    for (let number = 1; ; number++) {
      const name = number === 1 ? stem : `${stem}-${number}`
      const known = taken.get(name) ?? (await present(join(folder, name)))
      if (known !== undefined && known !== secret) continue
      if (known === undefined) files.push({ path: join(folder, name), secret })
      taken.set(name, secret)
      return `\${file:${spelt}/${name}}`
    }
  }
  return { keep, files }
}

async function present(path: string): Promise<string | undefined> {
  try {
    return (await readFile(path, 'utf8')).replace(/\r?\n$/, '')
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw thrown
  }
}

/** Each secret in a variable that somebody else sets: nothing is copied at all. */
export function variableKeeper(): { readonly keep: Keep } {
  const taken = new Map<string, string>()
  const keep: Keep = async (secret, server, key) => {
    for (const name of namesFor(server, key)) {
      const known = taken.get(name)
      if (known !== undefined && known !== secret) continue
      taken.set(name, secret)
      return `\${${name}}`
    }
    throw new Error('there is always another name')
  }
  return { keep }
}

/** A variable's own name says enough; anything else is too common to go without the server's. */
function* namesFor(server: string, key: string): Iterable<string> {
  if (/^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$/.test(key)) yield key
  const long = variableName(`${server}_${key}`)
  yield long
  for (let number = 2; ; number++) yield `${long}_${number}`
}

const variableName = (text: string): string =>
  text
    .toUpperCase()
    .replace(/[^A-Z0-9]+/g, '_')
    .replace(/^(\d)/, '_$1')
