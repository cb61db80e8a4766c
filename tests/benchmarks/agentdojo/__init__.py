"""AgentDojo: its suites as toolsets, a policy for each, and a script that obeys what it reads."""
