/** PostgreSQL takes neither NUL nor half a character. What is looked for is changed in the same way. */
export const storable = (text: string): string => text.replaceAll('\0', '\ufffd').toWellFormed()

/** The log cuts such names to this length itself; what somebody else wrote into it must still fit into an index. */
const longest = 512

export const indexable = (text: string): string => storable(text.slice(0, longest))
