/** Files of other programs in the forms that these document, with everything that makes them awkward to read. */

export const claudeDesktop = `{
  "globalShortcut": "Ctrl+Space",
  "preferences": { "menuBarEnabled": false },
  "mcpServers": {
    "filesystem": {
      "command": "npx",
      "args": ["-y", "@modelcontextprotocol/server-filesystem", "/home/me/Documents"]
    },
    "github": {
      "command": "docker",
      "args": ["run", "-i", "--rm", "-e", "GITHUB_PERSONAL_ACCESS_TOKEN", "ghcr.io/github/github-mcp-server"],
      "env": { "GITHUB_PERSONAL_ACCESS_TOKEN": "ghp_0123456789abcdefghijABCDEFGHIJ012345" }
    }
  }
}
`

export const claudeCode = `{
  "numStartups": 42,
  "userID": "0f0f",
  "mcpServers": {
    "sentry": { "type": "http", "url": "https://mcp.sentry.dev/mcp", "alwaysLoad": true, "timeout": 600000 }
  },
  "projects": {
    "/projects/shop": {
      "allowedTools": [],
      "mcpServers": {
        "memory": { "type": "stdio", "command": "npx", "args": ["-y", "@modelcontextprotocol/server-memory"], "env": {} },
        "local": { "type": "stdio", "command": "python", "args": ["server.py"], "env": {} }
      },
      "disabledMcpServers": ["local"]
    },
    "/projects/blog": {
      "mcpServers": {
        "memory": { "type": "stdio", "command": "npx", "args": ["-y", "@modelcontextprotocol/server-memory"], "env": {} },
        "local": { "type": "stdio", "command": "python", "args": ["server.py"], "env": {} },
        "internal": { "type": "http", "url": "https://mcp.example.com/mcp", "headersHelper": "/opt/bin/headers.sh" }
      }
    },
    "/projects/empty": { "history": [] }
  }
}
`

export const cursor = `{
  "mcpServers": {
    "files": { "command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "\${workspaceFolder}"] },
    "notes": {
      "type": "stdio",
      "command": "python",
      "args": ["\${userHome}/notes/server.py"],
      "env": { "KEY": "\${env:NOTES_KEY}" },
      "envFile": "\${workspaceFolder}/.env"
    },
    "docs": {
      "url": "https://docs.example.com/mcp",
      "headers": { "Authorization": "Bearer \${env:DOCS_TOKEN}" },
      "auth": { "CLIENT_ID": "abc", "CLIENT_SECRET": "def", "scopes": ["read"] }
    }
  }
}
`

export const vscode = `{
  // Tokens are asked for.
  "inputs": [
    { "type": "promptString", "id": "perplexity-key", "description": "Perplexity API Key", "password": true },
    { "type": "pickString", "id": "region", "description": "Region", "options": ["eu", "us"], "default": "eu" },
  ],
  "servers": {
    "perplexity": {
      "type": "stdio",
      "command": "npx",
      "args": ["-y", "server-perplexity-ask", "--region=\${input:region}"],
      "env": { "PERPLEXITY_API_KEY": "\${input:perplexity-key}", "ROOT": "\${workspaceFolder}/src" },
      "dev": { "watch": "build/**/*.js" },
    },
    "local": { "command": "node", "args": ["dist/server.js"], "envFile": "\${workspaceFolder}/.env", "sandboxEnabled": true },
    "github": { "type": "http", "url": "https://api.githubcopilot.com/mcp/", "gallery": true, "version": "1.0.0" },
  },
}
`

export const codex = `model = "gpt-5-codex"
approval_policy = "on-request"

[profiles.fast]
model_reasoning_effort = "low"

[mcp_servers.context7]
command = "npx"
args = ["-y", "@upstash/context7-mcp"]
env_vars = ["LOCAL_TOKEN", { name = "OTHER_TOKEN", source = "local" }]
startup_timeout_sec = 20
tool_timeout_sec = 45.5
enabled_tools = ["resolve-library-id", "get-library-docs"]
disabled_tools = ["noisy"]

[mcp_servers.context7.env]
LEVEL = "debug"

[mcp_servers.shell]
command = "bash"
args = ["-lc", "exec server --home \${HOME}"]
enabled = false
required = true

[mcp_servers.figma]
url = "https://mcp.figma.com/mcp"
bearer_token_env_var = "FIGMA_OAUTH_TOKEN"
http_headers = { "X-Figma-Region" = "us-east-1" }
env_http_headers = { "X-Team" = "FIGMA_TEAM" }
supports_parallel_tool_calls = true
default_tools_approval_mode = "prompt"

[mcp_servers.figma.tools.get_code]
approval_mode = "approve"
`

export const opencode = `{
  "$schema": "https://opencode.ai/config.json",
  "theme": "system",
  "mcp": {
    "everything": {
      "type": "local",
      "command": ["npx", "-y", "@modelcontextprotocol/server-everything"],
      "environment": { "KEY": "{env:EVERYTHING_KEY}", "SHELL_TEXT": "\${NOT_A_VARIABLE}" },
      "timeout": 8000,
      "enabled": true,
    },
    "jira": {
      "type": "remote",
      "url": "https://jira.example.com/mcp",
      "headers": { "Authorization": "Bearer {file:~/.secrets/jira}" },
      "oauth": false,
      "enabled": false,
    },
    "company": { "enabled": true },
  },
}
`

export const opencodeNewer = `{
  "mcp": {
    "timeout": 5000,
    "servers": {
      "everything": { "type": "local", "command": ["npx", "-y", "server-everything"], "cwd": ".", "disabled": true },
      "docs": { "type": "remote", "url": "https://docs.example.com/mcp", "oauth": { "client_id": "abc", "scope": "a b" } }
    }
  }
}
`

export const gemini = `{
  "theme": "Dracula",
  "selectedAuthType": "gemini-api-key",
  "mcp": { "allowed": ["python", "http", "extra"], "excluded": ["extra"] },
  "mcpServers": {
    "python": {
      "command": "python",
      "args": ["-m", "my_mcp_server", "--port", "8080"],
      "cwd": "./mcp-servers/python",
      "env": { "DATABASE_URL": "$DB_CONNECTION_STRING", "API_KEY": "\${EXTERNAL_API_KEY}" },
      "timeout": 15000,
      "trust": true
    },
    "http": {
      "httpUrl": "http://localhost:3000/mcp",
      "headers": { "Authorization": "Bearer $API_TOKEN" },
      "includeTools": ["safe_tool"],
      "excludeTools": ["dangerous_tool"],
      "oauth": { "enabled": true, "scopes": ["https://example.com/read"] },
      "authProviderType": "google_credentials"
    },
    "extra": { "url": "http://localhost:8080/sse" },
    "unlisted": { "command": "x" }
  }
}
`

export const windsurf = `{
  "mcpServers": {
    "remote-http-mcp": {
      "serverUrl": "https://mcp.example.com/mcp",
      "headers": { "API_KEY": "Bearer \${env:AUTH_TOKEN}" },
      "disabledTools": ["delete_everything"]
    },
    "github-mcp-server": {
      "command": "npx",
      "args": ["-y", "@modelcontextprotocol/server-github"],
      "env": { "GITHUB_PERSONAL_ACCESS_TOKEN": "\${file:~/.secrets/github}" },
      "disabled": false
    }
  }
}
`

export const zed = `// Zed settings
{
  "theme": "One Dark",
  "context_servers": {
    "local": { "source": "custom", "enabled": true, "command": "npx", "args": ["-y", "x"], "env": {}, "timeout": 120 },
    "older": { "command": { "path": "uvx", "args": ["mcp-server-git"], "env": { "A": "b" } }, "settings": {} },
    "remote": { "url": "https://mcp.example.com/mcp", "headers": { "Authorization": "Bearer abc" }, "enabled": false },
    "from-extension": { "settings": { "token": "abc" } },
  },
}
`

export const cline = `{
  "mcpServers": {
    "github.com/modelcontextprotocol/servers/tree/main/src/github": {
      "command": "npx",
      "args": ["-y", "@modelcontextprotocol/server-github"],
      "env": { "GITHUB_PERSONAL_ACCESS_TOKEN": "ghp_0123456789abcdefghijABCDEFGHIJ012345" },
      "autoApprove": ["search_repositories"],
      "disabled": false,
      "timeout": 60
    },
    "remote": {
      "type": "streamableHttp",
      "url": "https://mcp.example.com/mcp",
      "headers": { "Authorization": "Bearer your-token" },
      "alwaysAllow": ["tool3"],
      "disabled": true
    }
  }
}
`
