import { type Block, parseBlocks } from '../../components/markdown/blocks.ts'

/** The error documentation. It is bundled as a separate chunk, so that it works without access to another site. */
const pages = import.meta.glob<string>('../../../../docs/errors/*.md', {
  query: '?raw',
  import: 'default',
  eager: true,
})

/** The documentation for an error code. Null for unknown codes. */
export function errorPage(code: string): readonly Block[] | null {
  const page = pages[`../../../../docs/errors/${code}.md`]
  return page === undefined ? null : parseBlocks(page.replace(/<!--[\s\S]*?-->/g, ''))
}
