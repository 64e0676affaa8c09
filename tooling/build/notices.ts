import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

interface Package {
  readonly name: string
  readonly version: string
  readonly license: string
  readonly text: string
}

/** What the licences of others ask of whoever passes their code on: one text for all packages that modules are from. */
export function noticesFor(modules: Iterable<string>): string {
  const folders = new Set([...modules].flatMap((id) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(id)?.[0] ?? []))
  const packages = [...folders].map(read).sort((one, other) => one.name.localeCompare(other.name, 'en'))
  const list = packages.map(({ name, version, license }) => `- ${name} ${version} (${license})`)
  const texts = packages.map(({ name, version, text }) => `## ${name} ${version}\n\n${text}`)
  return `# Software of others in these files\n\n${list.join('\n')}\n\n${texts.join('\n\n')}\n`
}

function read(folder: string): Package {
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Package & { author?: unknown }
  const { name, version, license, author } = manifest
  // A package that may not be passed on is a mistake to be found now, and not by its author.
  if (typeof license !== 'string') throw new Error(`${name} ${version} does not say under which licence it is.`)
  const file = readdirSync(folder).find((entry) => /^(licen[cs]e|copying)/i.test(entry))
  if (file !== undefined) return { name, version, license, text: readFileSync(join(folder, file), 'utf8').trim() }
  const by = typeof author === 'object' ? (author as { name?: string } | null)?.name : author
  return {
    name,
    version,
    license,
    text: `It has no file with its licence; it is by ${by ?? 'its authors'}, under ${license}.`,
  }
}
