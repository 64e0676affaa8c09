const set = (names: string): ReadonlySet<string> => new Set(names.split(' '))

/** Elements that have no content and no end tag. */
const voids = set('area base br col embed hr img input link meta param source track wbr')

/** Elements that are skipped: scripts, styles, and elements that only a browser can show. */
export const unread = set(
  'script style template noscript iframe object svg canvas video audio select button dialog datalist xmp noembed noframes textarea nav',
)

/** Elements that start on a new line. */
export const blocks = set(
  'address article aside blockquote body center dd details div dl dt fieldset figcaption figure footer form header hgroup html main ol pre section summary table tbody tfoot thead tr ul li',
)

/** Elements that are surrounded by blank lines. */
export const paragraphs = set('p h1 h2 h3 h4 h5 h6 pre blockquote table caption ul ol dl article section figure hr')

/** The open elements that each start tag closes implicitly (`closed`), up to the nearest container (`within`). */
const ends: Readonly<Record<string, { readonly closed: ReadonlySet<string>; readonly within: ReadonlySet<string> }>> = {
  li: { closed: set('li'), within: set('ul ol menu') },
  dt: { closed: set('dt dd'), within: set('dl') },
  dd: { closed: set('dt dd'), within: set('dl') },
  td: { closed: set('td th'), within: set('tr table') },
  th: { closed: set('td th'), within: set('tr table') },
  tr: { closed: set('tr'), within: set('table') },
  a: { closed: set('a'), within: set('table') },
}

/** Whether an element is invisible. A model should not read text that people cannot see. */
export function isHidden(attributes: ReadonlyMap<string, string>): boolean {
  if (attributes.has('hidden') || attributes.get('aria-hidden')?.toLowerCase() === 'true') return true
  const style = attributes.get('style')
  if (style === undefined) return false
  return /(?:^|[;\s])(?:display\s*:\s*none|visibility\s*:\s*hidden|opacity\s*:\s*0(?:\.0+)?\s*(?:;|$|!)|font-size\s*:\s*0)/i.test(
    style.slice(0, 2000),
  )
}

interface OpenElement {
  readonly name: string
  end?(): void
}

/** Max nesting depth of elements. Only pages that try to exhaust parsers are nested more deeply. */
const maxDepth = 256

/** The stack of open elements. A page can close elements in any order, or never. */
export function createOpenElements() {
  const open: OpenElement[] = []
  const counts = new Map<string, number>()
  const count = (name: string, by: number) => counts.set(name, (counts.get(name) ?? 0) + by)

  const pop = (): OpenElement | undefined => {
    const element = open.pop()
    if (element) count(element.name, -1)
    element?.end?.()
    return element
  }

  /** Closes the innermost element with this name and everything inside it. Does nothing if no such element is open. */
  const close = (name: string): void => {
    if ((counts.get(name) ?? 0) === 0) return
    while (pop()?.name !== name);
  }

  return {
    before(name: string) {
      const rule = ends[name]
      if (!rule) return
      for (let at = open.length - 1; at >= 0; at--) {
        const found = open[at]?.name ?? ''
        if (rule.within.has(found)) return
        if (rule.closed.has(found)) return close(found)
      }
    },
    push(element: OpenElement) {
      if (voids.has(element.name) || open.length >= maxDepth) return element.end?.()
      open.push(element)
      count(element.name, 1)
    },
    close,
    closeAll() {
      while (pop());
    },
  }
}
