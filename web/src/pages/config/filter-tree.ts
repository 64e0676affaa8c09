/** The parts of a tree whose keys or values contain the text, with the paths that lead to them. */
export function filterTree(value: unknown, text: string): unknown {
  const needle = text.trim().toLowerCase()
  return needle === '' ? value : filterNode(value, needle, '')
}

/** The matching part of a node. Undefined if nothing matches. Everything below a matching key is kept. */
function filterNode(value: unknown, needle: string, path: string): unknown {
  if (path.toLowerCase().includes(needle)) return value
  if (typeof value !== 'object' || value === null)
    return String(value).toLowerCase().includes(needle) ? value : undefined
  if (Array.isArray(value)) {
    const items = value.filter((item) => filterNode(item, needle, '') !== undefined)
    return items.length > 0 ? items : undefined
  }
  const members = Object.entries(value)
    .map(([key, member]) => [key, filterNode(member, needle, path === '' ? key : `${path}.${key}`)] as const)
    .filter(([, member]) => member !== undefined)
  return members.length > 0 ? Object.fromEntries(members) : undefined
}
