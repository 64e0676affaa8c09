import { isRecord } from './is-record.ts'

const frontMatterBlock = /^\uFEFF?---[ \t]*\r?\n(.*?)\r?\n---[ \t]*(?:\r?\n|$)/s
const maxFrontMatter = 64 * 1024

/** The YAML front matter of a Markdown file as JSON; undefined if there is none that can be read. */
export async function readFrontMatter(text: string): Promise<Readonly<Record<string, unknown>> | undefined> {
  const yaml = frontMatterBlock.exec(text)?.[1]
  if (yaml === undefined || yaml.length > maxFrontMatter) return undefined
  const { parse } = await import('yaml')
  try {
    const value: unknown = parse(yaml, { maxAliasCount: 10 })
    return isRecord(value) ? value : undefined
  } catch {
    return undefined
  }
}
