import type { RootContent } from 'mdast'
import { parseMarkdown } from '../../components/markdown/parse.ts'
import { pathTo } from '../../routing/route.ts'

/** Parses a page of the error documentation. Links to other documentation become text, because it is not bundled. */
export const parseErrorPage = (page: string): readonly RootContent[] =>
  parseMarkdown(page.replace(/<!--[\s\S]*?-->/g, '').replace(/\[([^\]]+)\]\(\.\.\/[^)]+\)/g, '$1'), (url) => {
    const [, code] = /^([A-Z_]+)\.md$/.exec(url) ?? []
    return code && pathTo('errors', code)
  }) ?? []
