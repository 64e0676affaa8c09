import { type Block, blocksOf } from './markdown.ts'

/** The pages of the documentation come along, all in one file of their own: nobody is sent to another site. */
const pages = import.meta.glob<string>('../../../../docs/errors/*.md', {
  query: '?raw',
  import: 'default',
  eager: true,
})

/** The page about a code, or null where there is none. */
export function pageOf(code: string): readonly Block[] | null {
  const page = pages[`../../../../docs/errors/${code}.md`]
  return page === undefined ? null : blocksOf(page)
}
