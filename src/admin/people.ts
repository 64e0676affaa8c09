import { type AdminDoor, type AdminDoorOptions, createAdminDoor, type OpenDoor } from '../serve/admin/door.ts'
import { createAdmin } from './index.ts'
import type { AdminParts } from './parts.ts'

/** What the gateway knows before its door is open. */
export interface PeopleOptions
  extends Omit<AdminParts, 'sessions' | 'endpoint'>,
    Pick<AdminDoorOptions, 'authenticate' | 'config' | 'metrics' | 'folder'> {}

/** Everything for people, to be opened with the HTTP door and closed with it. */
export const forPeople =
  (options: PeopleOptions) =>
  ({ url, port, hosts, admit, bodies, sessions, chat }: OpenDoor): AdminDoor => {
    const admin = createAdmin({ ...options, sessions, endpoint: () => url })
    const door = createAdminDoor({ ...options, admin, admit, bodies, port, hosts, chat })
    return {
      handle: door.handle,
      [Symbol.dispose]() {
        door[Symbol.dispose]()
        // A thread that reads the audit log must not hold anybody up.
        void admin[Symbol.asyncDispose]()
      },
    }
  }
