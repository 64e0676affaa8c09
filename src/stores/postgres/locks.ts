/** Locks that replicas hold in PostgreSQL for the length of a transaction. The first number is ours alone: "tool". */
const ours = 0x746f6f6c

export const lockKeys = {
  migrate: [ours, 1],
  partitions: [ours, 2],
  retention: [ours, 3],
} as const
