import type { RootContent } from 'mdast'
import { parseErrorPage } from './parse-page.ts'

const pages = import.meta.glob<string>('../../../../docs/errors/*.md', {
  query: '?raw',
  import: 'default',
  eager: true,
})

/** The documentation for an error code, which works without access to another site. Undefined for unknown codes. */
export function errorPage(code: string): readonly RootContent[] | undefined {
  const page = pages[`../../../../docs/errors/${code}.md`]
  return page === undefined ? undefined : parseErrorPage(page)
}
