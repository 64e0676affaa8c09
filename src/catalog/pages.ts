import type { Page } from '../core/access.ts'
import { ToolwayError } from '../core/errors.ts'
import type { Item } from './item.ts'

/** Few clients ask for a second page, so the first one holds whatever a client can bear. */
const pageSize = 10_000

/** A list cut into pages whose bytes are put together once. */
export interface Pages {
  page(cursor: string | undefined): Page
}

export function createPages(items: readonly Item[]): Pages {
  const made = new Map<number, Page>()
  let positions: Map<string, number> | undefined

  const startOf = (cursor: string | undefined): number => {
    if (cursor === undefined) return 0
    positions ??= new Map(items.map((item, index) => [cursorOf(item), index]))
    const position = positions.get(cursor)
    if (position !== undefined) return position + 1
    throw new ToolwayError('INVALID_ARGUMENTS', 'This cursor is unknown or no longer valid; list again without one.')
  }

  return {
    page: (cursor) => {
      const start = startOf(cursor)
      const page = made.get(start) ?? makePage(items, start)
      // Only pages that follow one another are kept: any name makes a cursor, and each would make a page.
      if (start % pageSize === 0) made.set(start, page)
      return page
    },
  }
}

function makePage(items: readonly Item[], start: number): Page {
  const shown = items.slice(start, start + pageSize)
  const last = shown.at(-1)
  const more = last !== undefined && start + pageSize < items.length
  return { items: joined(shown), count: shown.length, ...(more && { nextCursor: cursorOf(last) }) }
}

/** Opaque to clients, and the same on every replica: it holds for as long as that entry is listed. */
const cursorOf = (item: Item): string => Buffer.from(item.name).toString('base64url')

const joined = (items: readonly Item[]): Buffer => Buffer.from(`[${items.map(({ json }) => json).join()}]`)
