/** The current page. Filters and time ranges are not part of it, because they are in the query. */
export type Route =
  | { readonly page: PageName | 'sign-in' | 'not-found' }
  | { readonly page: 'servers' | 'tools' | 'skills' | 'pins'; readonly name: string }
  | { readonly page: 'calls'; readonly id: string }
  | { readonly page: 'errors'; readonly code: string }

export const pages = [
  'overview',
  'servers',
  'tools',
  'skills',
  'pins',
  'chat',
  'calls',
  'approvals',
  'policy',
  'keys',
  'audit',
  'config',
] as const

/** The pages of which users without admin rights see nothing, and what the pages show. */
export const adminPages: Readonly<Partial<Record<Route['page'], string>>> = {
  skills: 'the skills',
  pins: 'the definitions',
  keys: 'API keys',
  audit: 'the audit log',
  config: 'the configuration',
}

export type PageName = (typeof pages)[number]

/** The page for a path; `not-found` for unknown paths. */
export function parseRoute(path: string): Route {
  const parts = path.split('/').filter((part) => part !== '')
  const [page, rest, ...more] = parts
  if (page === undefined) return { page: 'overview' }
  if (more.length > 0) return { page: 'not-found' }
  if (rest === undefined) return { page: page === 'sign-in' || isPage(page) ? page : 'not-found' }
  const item = decode(rest)
  if (item === undefined) return { page: 'not-found' }
  if (page === 'servers' || page === 'tools' || page === 'skills' || page === 'pins') return { page, name: item }
  if (page === 'calls') return { page, id: item }
  if (page === 'errors') return { page, code: item }
  return { page: 'not-found' }
}

const isPage = (text: string): text is PageName => text !== 'overview' && (pages as readonly string[]).includes(text)

function decode(part: string): string | undefined {
  try {
    return decodeURIComponent(part)
  } catch {
    return undefined
  }
}

export const pathTo = (page: PageName | 'errors' | 'sign-in', item?: string): string =>
  item === undefined ? (page === 'overview' ? '/' : `/${page}`) : `/${page}/${encodeURIComponent(item)}`
