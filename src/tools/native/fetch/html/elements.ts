const set = (names: string): ReadonlySet<string> => new Set(names.split(' '))

/** Without content and end tag. */
export const voids = set('area base br col embed hr img input link meta param source track wbr')

/** Nobody reads these: programs, style, and what only a browser can show. */
export const unread = set(
  'script style template noscript iframe object svg canvas video audio select button dialog datalist xmp noembed noframes textarea nav',
)

/** Begin a line of their own. */
export const blocks = set(
  'address article aside blockquote body center dd details div dl dt fieldset figcaption figure footer form header hgroup html main ol pre section summary table tbody tfoot thead tr ul li',
)

/** Have an empty line around them. */
export const paragraphs = set('p h1 h2 h3 h4 h5 h6 pre blockquote table ul ol dl article section figure hr')

/** What an opening tag ends although nobody has said so, up to the elements that hold it. */
export const ends: Readonly<
  Record<string, { readonly closed: ReadonlySet<string>; readonly within: ReadonlySet<string> }>
> = {
  li: { closed: set('li'), within: set('ul ol menu') },
  dt: { closed: set('dt dd'), within: set('dl') },
  dd: { closed: set('dt dd'), within: set('dl') },
  td: { closed: set('td th'), within: set('tr table') },
  th: { closed: set('td th'), within: set('tr table') },
  tr: { closed: set('tr'), within: set('table') },
  a: { closed: set('a'), within: set('table') },
}

/** Whether an author hides an element from people: what they cannot see is not for a model to read. */
export function isHidden(attributes: ReadonlyMap<string, string>): boolean {
  if (attributes.has('hidden') || attributes.get('aria-hidden')?.toLowerCase() === 'true') return true
  const style = attributes.get('style')
  if (style === undefined) return false
  return /(?:^|[;\s])(?:display\s*:\s*none|visibility\s*:\s*hidden|opacity\s*:\s*0(?:\.0+)?\s*(?:;|$|!)|font-size\s*:\s*0)/i.test(
    style.slice(0, 2000),
  )
}
