/** Formats a number with a noun: `1 server`, `3 servers`. */
export const pluralize = (number: number, thing: string): string => `${number} ${thing}${number === 1 ? '' : 's'}`
