// Gives opencode lessons from earlier sessions. Written by `lessonbank install opencode`.
import { spawn } from "node:child_process"
import { homedir } from "node:os"
import { join } from "node:path"

const COMMAND = [] /* the hook's command */
const WITHIN = 400 /* milliseconds */
const GONE = "" /* its program is gone */
let isGone = false

/** Hand an event to the hook; what it prints, or "" when it fails or takes too long. */
function hook(event) {
  return new Promise((resolve) => {
    const child = spawn(COMMAND[0], COMMAND.slice(1), { stdio: ["pipe", "pipe", "ignore"] })
    const timer = setTimeout(() => child.kill("SIGKILL"), WITHIN)
    let out = ""
    child.stdout.on("data", (data) => (out += data))
    child.stdin.on("error", () => {})
    child.on("error", () => {
      isGone = true
      resolve("")
    })
    child.on("close", (code) => {
      clearTimeout(timer)
      isGone ||= code > 0
      resolve(out)
    })
    child.stdin.end(JSON.stringify(event))
  })
}

const data = process.env.XDG_DATA_HOME || join(homedir(), ".local", "share")
const transcript_path = join(data, "opencode", "opencode.db")

export const lessonbank = async ({ client, directory }) => {
  const children = new Set()
  const commands = new Map()
  const warned = new Set()
  const toast = (message) => client.tui.showToast({ body: { message, variant: "info" } }).catch(() => {})
  const note = (name, session_id, more) => hook({ hook_event_name: name, session_id, transcript_path, cwd: directory, ...more })
  await hook({ hook_event_name: "SessionStart", session_id: "start" })
  return {
    event: async ({ event }) => {
      const info = event.properties?.info
      if (event.type === "session.created" && info?.parentID) children.add(info.id)
      const session = event.properties?.sessionID
      if (event.type === "session.idle" && !children.has(session)) await note("Stop", session)
    },
    "tool.execute.before": async (input, output) => {
      if (input.tool === "bash") commands.set(input.callID, output.args?.command)
    },
    "tool.execute.after": async (input, output) => {
      const command = commands.get(input.callID)
      commands.delete(input.callID)
      const code = output.metadata?.exit
      if (!command || !(code > 0) || children.has(input.sessionID)) return
      const told = { tool_name: "Bash", tool_input: { command }, error: "Exit code " + code + "\n" + output.output }
      try {
        const { systemMessage, hookSpecificOutput } = JSON.parse(await note("PostToolUseFailure", input.sessionID, told))
        if (systemMessage) toast(systemMessage)
        if (hookSpecificOutput) output.output += "\n\n" + hookSpecificOutput.additionalContext
      } catch {
        // no cure
      }
    },
    "chat.message": async (input, output) => {
      if (children.has(input.sessionID)) return
      const texts = output.parts.filter((part) => part.type === "text" && !part.synthetic)
      const prompt = texts.map((part) => part.text).join("\n")
      const answer = await note("UserPromptSubmit", input.sessionID, { prompt })
      if (isGone && !warned.has(input.sessionID)) toast(GONE)
      if (isGone) warned.add(input.sessionID)
      try {
        const { systemMessage, hookSpecificOutput } = JSON.parse(answer)
        if (systemMessage) toast(systemMessage)
        const text = hookSpecificOutput.additionalContext
        const { sessionID, messageID } = output.parts[0]
        const id = "prt_" + Date.now().toString(16) + Math.random().toString(16).slice(2, 12)
        output.parts.push({ id, sessionID, messageID, type: "text", text, synthetic: true })
      } catch {
        // no lessons this time
      }
    },
  }
}
