import { type Block, parseBlocks } from './markdown.ts'

/** The documentation is bundled as a separate chunk, so that no other site is needed. */
const pages = import.meta.glob<string>('../../../../docs/errors/*.md', {
  query: '?raw',
  import: 'default',
  eager: true,
})

/** Null for unknown codes. */
export function errorPage(code: string): readonly Block[] | null {
  const page = pages[`../../../../docs/errors/${code}.md`]
  return page === undefined ? null : parseBlocks(page)
}
