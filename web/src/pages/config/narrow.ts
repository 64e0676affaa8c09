/** The part of a tree whose keys or values contain the text, with the path to it. */
export function narrowed(value: unknown, text: string): unknown {
  const wanted = text.trim().toLowerCase()
  return wanted === '' ? value : part(value, wanted, '')
}

/** Undefined if nothing matches. Everything below a matching key is kept. */
function part(value: unknown, wanted: string, path: string): unknown {
  if (path.toLowerCase().includes(wanted)) return value
  if (typeof value !== 'object' || value === null)
    return String(value).toLowerCase().includes(wanted) ? value : undefined
  if (Array.isArray(value)) {
    const items = value.filter((item) => part(item, wanted, '') !== undefined)
    return items.length > 0 ? items : undefined
  }
  const members = Object.entries(value)
    .map(([key, member]) => [key, part(member, wanted, path === '' ? key : `${path}.${key}`)] as const)
    .filter(([, member]) => member !== undefined)
  return members.length > 0 ? Object.fromEntries(members) : undefined
}
